"""The update of a first convolution at 224 pixels needs at most twice the memory of the layer's forward."""

from __future__ import annotations

import subprocess
import sys
import weakref
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from synaptune.plasticity import nhl_update, synapses_of


class LiveBytes(TorchDispatchMode):
    """Follows the storages that operations make: how many bytes live at once, and how many did at the worst time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._known: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {leaf.untyped_storage()._cdata for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and leaf.untyped_storage()._cdata not in given:
                self._follow(leaf.untyped_storage())
        return result

    def _follow(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key in self._known:
            return
        self._known[key] = storage.nbytes()
        self.now += storage.nbytes()
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._forget, key)

    def _forget(self, key: int) -> None:
        self.now -= self._known.pop(key)


def peak_bytes(layer: nn.Conv2d, x: Tensor, **options: Any) -> int:
    with LiveBytes() as live:
        synapses, padded = synapses_of(layer, x)
        nhl_update(layer.weight, padded, synapses=synapses, eta=1e-3, **options)
    return live.peak


def forward_bytes(layer: nn.Conv2d, x: Tensor) -> int:
    with torch.device("meta"):
        output = nn.functional.conv2d(
            torch.empty(x.shape), torch.empty(layer.weight.shape), None, layer.stride, layer.padding
        )
    return (x.numel() + output.numel()) * 4


def with_patch_matrix(layer: nn.Conv2d, x: Tensor) -> Tensor:
    patches = F.unfold(x, layer.kernel_size, stride=layer.stride, padding=layer.padding)
    y = (layer.weight.flatten(1) @ patches).softmax(1)
    return torch.einsum("nkp,ndp->kd", y, patches)


@pytest.mark.parametrize(
    ("batch", "padding_mode", "options"),
    [
        (128, "zeros", {}),
        (48, "zeros", {"sign": "anti", "temperature_on": "raw", "centre": "channel", "border": "valid"}),
        (48, "reflect", {"sign": "krotov", "rank": 3, "centre": "patch", "reduce": "ysum"}),
    ],
    ids=["default", "channel-centred", "reflect"],
)
def test_update_at_224_pixels_stays_within_twice_the_forward(
    batch: int, padding_mode: str, options: dict[str, Any]
) -> None:
    layer = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False, padding_mode=padding_mode)
    x = torch.rand(batch, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    assert peak_bytes(layer, x, **options) <= 2 * forward_bytes(layer, x)


def test_chunks_keep_the_update_far_below_the_forward_once_the_batch_is_large() -> None:
    layer = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
    x = torch.rand(64, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    assert peak_bytes(layer, x) <= forward_bytes(layer, x) / 2


def test_the_count_sees_a_patch_matrix() -> None:
    layer = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
    x = torch.rand(4, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with LiveBytes() as live, torch.no_grad():
        with_patch_matrix(layer, x)
    assert live.peak > 2 * forward_bytes(layer, x)
    assert live.now == 0


RESIDENT = """
import resource, sys
import torch
from torch import nn
from synaptune.plasticity import nhl_update, synapses_of

def high_water():
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

def update(images):
    synapses, padded = synapses_of(layer, images)
    nhl_update(layer.weight, padded, synapses=synapses, eta=1e-3)

layer = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
x = torch.rand(128, 3, 224, 224, generator=torch.Generator().manual_seed(0))
update(x[:1])
before = high_water()
update(x)
print(high_water() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="resident memory is read through the resource module")
def test_resident_memory_of_the_process_grows_by_less_than_twice_the_forward() -> None:
    # Counts what the kernels themselves allocate, which operations do not show.
    done = subprocess.run([sys.executable, "-c", RESIDENT], capture_output=True, text=True, check=True)
    layer = nn.Conv2d(3, 64, 7, stride=2, padding=3)
    assert int(done.stdout) <= 2 * forward_bytes(layer, torch.empty(128, 3, 224, 224, device="meta"))
