"""The engine on a GPU: the same results as on the CPU, and nothing left behind there."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import synaptune as st
from synaptune.errors import InputError
from tests.conformance.cases import CASES, HOME, METHODS
from tests.support.models import batches, build
from tests.support.state import differences, portrait

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")]


@pytest.mark.parametrize(("method", "kind"), CASES)
def test_gpu_and_cpu_agree_and_the_model_comes_back_whole(method: str, kind: str) -> None:
    model = build(kind, dtype=torch.float64).cuda()
    before = portrait(model)
    here, there = st.adapt(build(kind, dtype=torch.float64), method), st.adapt(model, method)
    for batch in batches(3, dtype=torch.float64):
        torch.testing.assert_close(there(batch.cuda()).cpu(), here(batch), rtol=0, atol=1e-6)
    there.detach()
    assert differences(before, portrait(model)) == []


@pytest.mark.parametrize("method", METHODS)
def test_an_adapter_may_move_to_the_gpu_in_the_middle_of_a_stream(method: str) -> None:
    still, moves = (st.adapt(build(HOME[method], dtype=torch.float64), method) for _ in range(2))
    first, second = batches(2, dtype=torch.float64)
    still(first)
    moves(first)
    moves.cuda()
    torch.testing.assert_close(moves(second.cuda()).cpu(), still(second), rtol=0, atol=1e-6)
    moves.cpu()
    source, back = build(HOME[method], dtype=torch.float64).state_dict(), moves.detach().state_dict()
    assert all(torch.equal(source[name], back[name]) for name in source)


@pytest.mark.parametrize("method", METHODS)
def test_a_state_saved_on_the_gpu_goes_on_on_the_cpu(method: str, tmp_path: Path) -> None:
    there = st.adapt(build(HOME[method]).cuda(), method)
    first, second = batches(2)
    there(first.cuda())
    there.save(tmp_path / "state.safetensors")
    here = st.adapt(build(HOME[method]), method)
    here.load(tmp_path / "state.safetensors")
    torch.testing.assert_close(here(second), there(second.cuda()).cpu(), rtol=0, atol=1e-3)
    torch.testing.assert_close(there.freeze()(second.cuda()), there.predict(second.cuda()), rtol=0, atol=1e-4)


def test_images_on_another_device_are_refused_with_the_fix() -> None:
    adapter = st.adapt(build("bn").cuda(), "nhl")
    with pytest.raises(InputError, match=r"images are on cpu, the model is on cuda:0: images.to\('cuda:0'\)"):
        adapter(batches(1)[0])
    assert torch.isfinite(adapter(batches(1)[0].cuda())).all()


@pytest.mark.parametrize("method", ["tent", "nhl", "nhl-tuned", "hebb-conv1"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_and_autocast_move_as_far_as_full_precision(method: str, dtype: torch.dtype) -> None:
    full, half, mixed = (
        st.adapt(build("bn").cuda().to(kind), method) for kind in (torch.float32, dtype, torch.float32)
    )
    for batch in batches(10):
        full(batch.cuda())
        half(batch.cuda().to(dtype))
        with torch.autocast("cuda", dtype):
            mixed(batch.cuda())
    for adapter in (half, mixed):
        assert not any(record.events for record in adapter.history)
        assert adapter.history[-1].weight_distance == pytest.approx(full.history[-1].weight_distance, rel=0.2)
