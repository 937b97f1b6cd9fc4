"""What it saves, and takes, to keep freed memory: processor time and peak memory of a step, in turns, as ratios.

    python benchmarks/allocator_speed.py [--rounds 3]

Each round starts one process for each side, on the same network and batch; what counts is the processor time of the
process (its own and the kernel's on its behalf), which other work on the machine hardly touches. Weights are random
where none are bundled: they do not change what a step costs.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys

SUBJECTS = {"zoo:resnet26-cifar10": (128, 32), "timm:resnet18": (64, 224), "timm:tf_efficientnet_lite0": (64, 224)}
STEPS = 4


def cost_of_step(network: str, keep: bool) -> tuple[float, float]:
    """Adapt a few batches, in this process; give the processor time of one, and the most memory in megabytes."""
    import torch

    import synaptune as st
    from synaptune.allocator import keep_freed_memory

    if keep and not keep_freed_memory():
        sys.exit("malloc of this system offers nothing to choose, or its settings were chosen already")
    torch.set_num_threads(1)
    batch, size = SUBJECTS[network]
    source, name = network.split(":")
    if source == "zoo":
        model = st.zoo.create(name)
    else:
        import timm

        model = timm.create_model(name, pretrained=False)
    images = torch.rand(batch, 3, size, size, generator=torch.Generator().manual_seed(0))
    adapter = st.adapt(model.to(memory_format=torch.channels_last), "nhl")
    images = images.to(memory_format=torch.channels_last)
    for _ in range(2):
        adapter(images)
    before = _used()
    for _ in range(STEPS):
        adapter(images)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    return (_used() - before) / STEPS, most


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def in_a_process(network: str, keep: bool) -> tuple[float, float]:
    """The same in a process of its own, as a fresh program would run it."""
    words = [sys.executable, __file__, "--one", network, *(["--keep"] if keep else [])]
    clean = {name: text for name, text in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    done = subprocess.run(words, check=True, capture_output=True, text=True, env=clean)  # noqa: S603
    seconds, most = done.stdout.split()
    return float(seconds), float(most)


def main() -> None:
    """Print a line for each network."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", choices=SUBJECTS, help=argparse.SUPPRESS)
    parser.add_argument("--keep", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(*cost_of_step(given.one, given.keep))
        return
    for network, (batch, size) in SUBJECTS.items():
        rounds = [(in_a_process(network, False), in_a_process(network, True)) for _ in range(given.rounds)]
        ratios = [usual / kept for (usual, _), (kept, _) in rounds]
        memory = [kept / usual for (_, usual), (_, kept) in rounds]
        usual, kept = (statistics.median(seconds for seconds, _ in side) for side in zip(*rounds, strict=True))
        print(
            f"{network}, nhl, {batch} images of {size} pixels: {usual:.2f} s as usual, {kept:.2f} s with memory kept; "
            f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}); peak memory times "
            f"{statistics.median(memory):.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
