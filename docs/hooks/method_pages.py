"""A page for each method, from its module, its options, its presets, and passes that are counted."""

from __future__ import annotations

import inspect
from functools import cache
from pathlib import Path

import torch

import synaptune as st
from markup import alternatives, cell, code, table
from synaptune.core.method import MethodInfo
from synaptune.errors import IncompatibleModelError
from synaptune.models import PreactResNet, RotationModel

BATCH = 2


def method_pages(docs: Path) -> dict[str, str]:
    """Return a page for each method; what lies in `docs/methods/NAME.md` comes after its formula."""
    index = {"methods/index.md": (docs / "methods/index.md").read_text(encoding="utf-8")}
    bases = [info for info in st.methods() if info.base is None]
    return index | {f"methods/{info.name}.md": _page(info, docs / f"methods/{info.name}.md") for info in bases}


def methods_table() -> str:
    """List all methods and named configurations."""
    rows = []
    for info in st.methods():
        page = f"[`{info.name}`]({info.base or info.name}.md)"
        rows.append((page, cell(info.summary), str(info.needs), _spelled(info), _paper(info)))
    return table(("name", "what it does", "needs", "passes per image", "paper"), rows)


def _page(info: MethodInfo, more: Path) -> str:
    module = inspect.getmodule(info.method)
    assert module is not None
    heading, _, rest = (inspect.getdoc(module) or info.summary).partition("\n")
    about = [f"Needs {info.needs}."]
    if info.paper:
        about.append(f"Paper: {_paper(info)}.")
    if info.code:
        about.append(f"Authors' code: [{info.code}](https://github.com/{info.code}).")
    prose = more.read_text(encoding="utf-8").strip() if more.is_file() else ""
    parts = [f"# {info.name}", f"**{heading}**", rest.strip(), " ".join(about), prose, _options(info)]
    return "\n\n".join(filter(None, [*parts, _presets(info), _cost(info)])) + "\n"


def _paper(info: MethodInfo) -> str:
    return f"[{info.paper}](https://arxiv.org/abs/{info.paper.removeprefix('arXiv:')})" if info.paper else ""


def _options(info: MethodInfo) -> str:
    kind = type(info.options)
    rows = [
        (code(name), alternatives(spelled), code(repr(default)), cell(meaning))
        for name, spelled, default, meaning in kind.describe()
    ]
    name = f"st.{kind.__name__}" if kind.__name__ in st.__all__ else kind.__name__
    return f"## Options: `{name}`\n\n{table(('option', 'values', 'default', 'meaning'), rows)}"


def _presets(info: MethodInfo) -> str:
    presets = [other for other in st.methods() if other.base == info.name]
    if not presets:
        return ""
    rows = []
    for other in presets:
        usual = info.options.as_dict()
        changed = {name: value for name, value in other.options.as_dict().items() if value != usual[name]}
        spelled = ", ".join(f"{name}={value!r}" for name, value in changed.items())
        rows.append((code(other.name), code(spelled) if spelled else "as they are", cell(other.summary)))
    return f"## Named configurations\n\n{table(('name', 'options', 'what it is'), rows)}"


def _cost(info: MethodInfo) -> str:
    forwards, backwards = passes(info)
    return (
        "## Cost\n\n"
        f"Counted when this page was made, on a batch of {BATCH} images: each image goes {_times(forwards)} forward "
        f"through the network, and {_times(backwards)} backward through what is tuned. Plain inference is one forward. "
        "`st.doctor(model, images)` measures the time and the memory of a step on your model."
    )


def _times(count: float) -> str:
    return {0: "not at all", 1: "once"}.get(count, f"{count:g} times")


def _spelled(info: MethodInfo) -> str:
    try:
        forwards, backwards = passes(info)
    except IncompatibleModelError:  # the ablation of four stages does not fit a network that has three
        return f"as `{info.base}`"
    return f"{forwards:g} forward" + (f", {backwards:g} backward" if backwards else "")


@cache
def passes(info: MethodInfo) -> tuple[float, float]:
    """Forward and backward passes per image in the first batch, on a network that every method fits."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = RotationModel(PreactResNet(8, num_classes=10)).eval()
        images = torch.rand(BATCH, 3, 8, 8)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # tensors this small gain nothing from threads, and lose much where cores are shared
    try:
        with st.adapt(model, info.options) as adapter:
            adapter(images)
            record = adapter.history[-1]
    finally:
        torch.set_num_threads(threads)
    return record.forwards / BATCH, record.backwards / BATCH
