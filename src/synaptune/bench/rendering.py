"""A sheet, or a comparison, as Markdown, plain text or JSON.

Each method has up to three lines: ours, what is printed, the difference. Numbers are errors in percent; a count such
as `(5/15)` says that a mean is over 5 of 15 columns, `±` is the standard deviation over seeds.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from synaptune.bench.compare import Comparison, Contrast
from synaptune.bench.sheet import Block, Entry, Line, Sheet

__all__ = ["Form", "render_comparison", "render_sheet"]

Form = Literal["markdown", "text", "json"]

_SHORT = {
    "gaussian_noise": "gauss",
    "shot_noise": "shot",
    "impulse_noise": "impul",
    "defocus_blur": "defoc",
    "glass_blur": "glass",
    "motion_blur": "motn",
    "zoom_blur": "zoom",
    "brightness": "brit",
    "contrast": "contr",
    "elastic_transform": "elast",
    "pixelate": "pixel",
    "jpeg_compression": "jpeg",
    "speckle_noise": "speck",
    "gaussian_blur": "gblur",
    "spatter": "spatt",
    "saturate": "satur",
    "error_online": "online",
    "error_after": "after",
    "error_full": "full set",
    "error_oracle": "oracle",
    "ece": "ECE",
}
_EFFECTS = "Mean at each level of a factor, over lines that differ in nothing else:"
_STATES = {"missing": "not here", "inapplicable": "n/a", "failed": "failed", "open": "open"}


def render_sheet(sheet: Sheet, form: Form = "markdown", *, command: str = "", width: int | None = None) -> str:
    """Render a sheet.

    Args:
        sheet: the content.
        form: which notation.
        command: what makes these numbers again; it stands under the table.
        width: characters in a line of plain text; tables that are wider go on below.
    """
    if form == "text":
        return _text(sheet, command, width)
    return {"markdown": _markdown, "json": _json}[form](sheet, command)


def _markdown(sheet: Sheet, command: str) -> str:
    parts = [f"# {sheet.title}", ""]
    for block in sheet.blocks:
        table = _table(block)
        rule = ["---", "---", *("---:" for _ in table[0][2:])]
        parts += [f"## {block.title}", "", *(f"| {' | '.join(row)} |" for row in (table[0], rule, *table[1:])), ""]
        if block.effects:
            rows = [["factor", "level", "mean", "lines"], ["---", "---", "---:", "---:"], *_effects(block)]
            parts += [_EFFECTS, "", *(f"| {' | '.join(row)} |" for row in rows), ""]
    parts += _below(sheet, command, bullet="- ", code="`")
    return "\n".join(parts)


def _text(sheet: Sheet, command: str, width: int | None) -> str:
    parts = [sheet.title, "=" * len(sheet.title), ""]
    for block in sheet.blocks:
        parts += [block.title, ""]
        for part in _folded(_table(block), width):
            parts += [*_aligned(part), ""]
        if block.effects:
            parts += [_EFFECTS, "", *_aligned([["factor", "level", "mean", "lines"], *_effects(block)]), ""]
    parts += _below(sheet, command, bullet="* ", code="")
    return "\n".join(line.rstrip() for line in parts)


def render_comparison(comparison: Comparison, form: Form = "markdown") -> str:
    """Render what came of comparing; a difference below zero means that the left side is better."""
    if form == "json":
        return json.dumps(dataclasses.asdict(comparison), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    interval = f"{100 * comparison.level:g} % interval"
    header = [
        *("model", "data", "left", "right", "left", "right"),
        *("difference", interval, "corruptions x pairs", "better/worse/pairs"),
    ]
    rows = [header, *map(_contrast_row, comparison.contrasts)]
    if form == "text":
        table = _aligned(rows, texts=4)
    else:
        rule = [*["---"] * 4, *["---:"] * 6]
        table = [f"| {' | '.join(row)} |" for row in (header, rule, *rows[1:])]
    said = [
        f"{comparison.metric} in percent, averaged over the pairs (seeds, severities) of a corruption, then over "
        "corruptions; left less right, below zero is better; intervals by a bootstrap over both."
    ]
    if comparison.unpaired:
        said.append(f"Rows without a counterpart, left out: {comparison.unpaired}.")
    if comparison.mixed:
        said.append(f"MIXED PROTOCOLS: the pairs differ in {', '.join(comparison.mixed)}.")
    return "\n".join([*table, "", *said, ""])


def _contrast_row(contrast: Contrast) -> list[str]:
    gap, method = contrast.difference, f" {contrast.method}" if contrast.method else ""
    return [
        contrast.model.removeprefix("zoo:"),
        contrast.data,
        contrast.left + method,
        contrast.right + method,
        f"{contrast.left_mean:.2f}",
        f"{contrast.right_mean:.2f}",
        f"{gap.mean:+.2f}",
        "-" if gap.low is None or gap.high is None else f"[{gap.low:+.2f}, {gap.high:+.2f}]",
        f"{gap.groups} x {gap.fewest}" + (f"-{gap.most}" if gap.most > gap.fewest else ""),
        f"{contrast.better}/{contrast.worse}/{contrast.pairs}",
    ]


def _aligned(table: Sequence[Sequence[str]], *, texts: int = 2) -> list[str]:
    """Pad columns to their width; the first so many hold text, the others numbers."""
    widths = [max(len(row[place]) for row in table) for place in range(len(table[0]))]
    pads: list[Callable[[str, int], str]] = [str.ljust if place < texts else str.rjust for place in range(len(widths))]
    lines = ["  ".join(pad(cell, width) for pad, cell, width in zip(pads, row, widths, strict=True)) for row in table]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def _folded(table: Sequence[Sequence[str]], width: int | None, *, texts: int = 2) -> Iterator[list[list[str]]]:
    """Split a table that is wider than a screen; every part has the first columns, which say what the lines are."""
    widths = [max(map(len, column)) + 2 for column in zip(*table, strict=True)]
    first, start = list(range(texts)), texts
    while start < len(widths):
        end = start + 1
        while end < len(widths) and (width is None or sum(widths[:texts]) + sum(widths[start : end + 1]) - 2 <= width):
            end += 1
        yield [[row[place] for place in (*first, *range(start, end))] for row in table]
        start = end


def _effects(block: Block) -> list[list[str]]:
    return [[effect.factor, effect.level, f"{effect.mean:.2f}", str(effect.lines)] for effect in block.effects]


def _below(sheet: Sheet, command: str, *, bullet: str, code: str) -> list[str]:
    said = [f"Errors in percent; {sheet.stamp}."] if sheet.stamp else ["Nothing has been measured yet."]
    if command:
        said.append(f"Made by: {code}{command}{code}")
    if sheet.absent:
        said += ["", "Not measured here:", "", *(bullet + text for text in sheet.absent)]
    if sheet.notes:
        said += ["", "Notes:", "", *(bullet + text for text in sheet.notes)]
    return [*said, ""]


def _table(block: Block) -> list[list[str]]:
    """Header and lines of a block, as text."""
    with_mean = not block.is_overview
    columns = [*(_SHORT.get(name, name) for name in block.columns), *(["mean"] if with_mean else [])]
    rows = [["method", "", *columns]]
    for line in block.lines:
        rows += _rows_of(line, block, with_mean=with_mean)
    return rows


def _rows_of(line: Line, block: Block, *, with_mean: bool) -> Iterator[list[str]]:
    entries = [line.entries.get(column, Entry()) for column in block.columns]
    state = next((_STATES[name] for name in line.states if name in _STATES), "")
    # Fifteen times "not here" makes a line that fits no screen; the mean says it once.
    in_columns = "-" if with_mean and state == _STATES["missing"] else state
    ours = [_ours(entry, in_columns, digits=1 if with_mean else 2) for entry in entries]
    means = [line.mean] if with_mean else []
    what = "oracle" if line.is_oracle else {"error_after": "after", "error_full": "full set"}.get(line.metric, "ours")
    yield [line.label, what, *ours, *(_ours(mean, state, digits=2) for mean in means)]
    if line.printed is None:
        return
    shown = [*entries, *means]
    source = "paper" if block.beside.startswith("paper") else "reference"
    oracle = " (oracle)" if line.printed.oracle else ""
    yield ["", source + oracle, *("" if entry.printed is None else _number(entry.printed) for entry in shown)]
    if line.comparable and any(entry.difference is not None for entry in shown):
        yield ["", "difference", *(_signed(entry.difference) for entry in shown)]


def _ours(entry: Entry, state: str, *, digits: int) -> str:
    if entry.ours is None:
        return state
    spread = "" if entry.spread is None else f" ± {entry.spread:.2f}"
    count = "" if entry.is_complete else f" ({entry.have}/{entry.total})"
    return f"{entry.ours:.{digits}f}{spread}{count}"


def _number(value: float) -> str:
    return f"{value:.2f}".removesuffix("0")


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.1f}"


def _json(sheet: Sheet, command: str) -> str:
    content = {
        "name": sheet.name,
        "title": sheet.title,
        "stamp": sheet.stamp,
        "command": command,
        "blocks": [_block_as_dict(block) for block in sheet.blocks],
        "absent": list(sheet.absent),
        "notes": list(sheet.notes),
    }
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _block_as_dict(block: Block) -> dict[str, Any]:
    return {
        "title": block.title,
        "beside": block.beside,
        "columns": list(block.columns),
        "lines": [_line_as_dict(line) for line in block.lines],
        "effects": [dataclasses.asdict(effect) for effect in block.effects],
    }


def _line_as_dict(line: Line) -> dict[str, Any]:
    return {
        "method": line.label,
        "metric": line.metric,
        "oracle": line.is_oracle,
        "printed_oracle": bool(line.printed and line.printed.oracle),
        "comparable": line.comparable,
        "factors": _plain(line.factors),
        "states": dict(line.states),
        "entries": {column: _entry_as_dict(entry) for column, entry in line.entries.items()},
        "mean": _entry_as_dict(line.mean),
    }


def _entry_as_dict(entry: Entry) -> dict[str, Any]:
    return {
        "ours": _rounded(entry.ours),
        "printed": _rounded(entry.printed),
        "difference": _rounded(entry.difference),
        "spread": _rounded(entry.spread),
        "have": entry.have,
        "total": entry.total,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _plain(values: Mapping[str, object]) -> dict[str, object]:
    return {
        key: list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
        for key, value in values.items()
    }
