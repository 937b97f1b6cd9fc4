"""One screen: at most 40 lines of 100 columns, whatever the model; what does not fit is counted or marked by dots."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from synaptune.diagnosis.record import Diagnosis, Fit, NormKind, Recommendation, StageSize

__all__ = ["COLUMNS", "LINES", "render"]

LINES, COLUMNS = 40, 100
_LABEL = 15
_MOST_ADVICE = 3
_MOST_REFUSALS = 6


def render(found: Diagnosis) -> str:
    """Write a diagnosis as text."""
    head = [
        _clip(
            f"{found.model}: {found.parameters:,} parameters, {', '.join(found.dtypes) or 'no dtype'} on "
            f"{', '.join(found.devices) or 'no device'}, {found.classes or 'unknown number of'} classes"
        ),
        *_entry("first layer", _part(found.first_conv.name, found.first_conv.text, found.first_conv.how), 2),
        *_entry("stages", _stages(found.stages), 3),
        *_entry("", found.stages_how, 1),
        *_entry("normalisation", "; ".join(map(_norm, found.norms)) or "none", 2),
        *_entry("classifier", _part(found.classifier.name, found.classifier.text, ""), 1),
        *_entry("input", str(found.expects), 2),
        *_entry("sample", _sample(found), 1),
        "",
    ]
    fits = _methods(found.fits)
    advice = [
        line for place, advice in enumerate(found.recommended[:_MOST_ADVICE]) for line in _advice(found, advice, place)
    ]
    room = LINES - len(head) - len(fits) - len(advice) - 1
    return "\n".join([*head, *fits, "", *advice, *_warnings([f.text for f in found.findings], room)])


def _part(name: str | None, text: str, how: str) -> str:
    return "; ".join(filter(None, (f"{name}: {text}" if name else text, how)))


def _stages(stages: Sequence[StageSize]) -> str:
    return "   ".join(
        f"{number} {_shorten(stage.modules)} ({_count(stage.parameters)})" for number, stage in enumerate(stages, 1)
    )


def _shorten(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]}"


def _norm(kind: NormKind) -> str:
    traits = [f"{kind.affine} with scale or shift" if kind.affine else "none with scale or shift"]
    if kind.statistics:
        traits.append(f"{kind.statistics} with running statistics")
    return f"{kind.layers} {kind.kind} ({', '.join(traits)})"


def _sample(found: Diagnosis) -> str:
    if found.sample is None:
        return "none given, so nothing was run: hand one over for checks and measured costs"
    shape = "x".join(map(str, found.sample.shape))
    values = f"{shape} {found.sample.dtype}, values {found.sample.low:.3g} to {found.sample.high:.3g}"
    seconds = found.sample.seconds
    return values if seconds is None else f"{values}; plain inference {1000 * seconds:,.1f} ms per batch"


def _methods(fits: Sequence[Fit]) -> list[str]:
    if not any(fit.fits for fit in fits) and len({fit.reason for fit in fits}) == 1:
        return _entry("every method", f"no: {fits[0].reason}", 4)
    lines = []
    for fit in (fit for fit in fits if fit.base is None and fit.fits):
        lines += _entry(fit.method, _touched(fit), 1)
    presets = ", ".join(fit.method for fit in fits if fit.base is not None and fit.fits)
    lines += _entry("presets", presets, 2) if presets else []
    refused = [fit for fit in fits if not fit.fits]
    shown = [fit for fit in refused if fit.base is None or _accepted(fits, fit.base)]
    for fit in shown[:_MOST_REFUSALS]:
        lines += _entry(fit.method, f"no: {fit.reason}", 2)
    hidden = [fit.method for fit in refused if fit not in shown[:_MOST_REFUSALS]]
    return lines + (_entry("also refused", ", ".join(hidden), 1) if hidden else [])


def _accepted(fits: Iterable[Fit], method: str) -> bool:
    return any(fit.method == method and fit.fits for fit in fits)


def _touched(fit: Fit) -> str:
    if not fit.tensors:
        return "fits, changes no stored tensor" if fit.method != "source" else "always fits, changes nothing"
    parts = []
    if fit.parameters:
        tensors = fit.tensors - fit.buffers
        parts.append(f"{_count(fit.parameters)} parameters ({100 * fit.share:.3g} %) in {tensors} tensors")
    if fit.buffers:
        parts.append(f"{fit.buffers} buffers of statistics")
    return f"fits, adapts {', '.join(parts)}"


def _advice(found: Diagnosis, advice: Recommendation, place: int) -> list[str]:
    cost = next((cost for cost in found.costs if cost.method == advice.method), None)
    spent = ""
    if cost is not None:
        spent = f" [{cost.ratio:.1f}x plain inference, +{_bytes(cost.extra_bytes)}]"
    return _entry("recommended" if place == 0 else "or", f"{advice.call}{spent}: {advice.why}", 2)


def _warnings(texts: Sequence[str], room: int) -> list[str]:
    entries = [_entry("note", text, 2) for text in texts]
    kept: list[str] = []
    for place, entry in enumerate(entries):
        left = len(entries) - place
        if len(kept) + len(entry) > room - (1 if left > 1 else 0):
            return [*kept, *_entry("", f"and {left} more notes: see as_dict(), or --json", 1)]
        kept += entry
    return kept


def _entry(label: str, text: str, most: int) -> list[str]:
    """A label and its text on at most `most` lines, cut with an ellipsis where it is longer."""
    if not text:
        return []
    lines = textwrap.wrap(
        text, COLUMNS - _LABEL - 2, max_lines=most, placeholder=" ...", break_on_hyphens=False, break_long_words=True
    )
    return [f"  {label if n == 0 else '':<{_LABEL}}{line}" for n, line in enumerate(lines)]


def _clip(line: str) -> str:
    return textwrap.shorten(line, COLUMNS, placeholder=" ...")


def _count(number: int) -> str:
    for size, unit in ((1_000_000, "M"), (10_000, "k")):
        if number >= size:
            return f"{number / (1000 if unit == 'k' else size):.3g} {unit}"
    return f"{number:,}"


def _bytes(number: int) -> str:
    return f"{number / 1e6:,.1f} MB" if number < 1e9 else f"{number / 1e9:,.2f} GB"
