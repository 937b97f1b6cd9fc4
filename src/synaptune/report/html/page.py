"""The page: one HTML file that needs nothing else, today and in ten years.

A content security policy, with the digests of the one style sheet and the one script, has browsers refuse anything from
elsewhere. The same report gives the same bytes.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from synaptune._version import __version__
from synaptune.errors import DataError
from synaptune.report.document import Report
from synaptune.report.html.markup import Markup, joined, tag, unbroken
from synaptune.report.html.panel_view import pane_rules, shifts_of
from synaptune.report.html.section_view import findings_view, section_view, stream_view
from synaptune.report.noise import CLEAR
from synaptune.report.verdicts import SOURCE

__all__ = ["to_html", "write_html"]

_COLOURS = 8

_TERMS = (
    ("Error", "Share of images whose most likely class is wrong, in percent. Differences are in points of percent."),
    ("Before the update", "A batch is predicted before the method learns from it, as in real use."),
    (
        "Noise",
        f"{CLEAR:g} standard errors: how far a number can be off because images are a sample and seeds differ. Methods "
        "see the same images, so differences are surer than this says; corruptions share clean images, so means are "
        "less sure.",
    ),
    ("Mean", "Over corruptions (or data sets), each weighing the same. Only complete lines are compared."),
    ("Entropy", "How undecided predictions are, in nats: 0 is certain."),
    ("Drift", "How far the first features lie from those of the source data, in its standard deviations."),
    ("Weight distance", "How far the adapted tensors have moved, relative to their size."),
)


def write_html(report: Report, path: str | Path) -> Path:
    """Write the page; returns its path. A file that is there is replaced in one step.

    Raises:
        DataError: the file cannot be written.
    """
    path = Path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(to_html(report), encoding="utf-8", newline="\n")
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):  # where a part of the path is no folder, unlinking fails as writing did
            part.unlink()
        raise DataError(f"the report cannot be written to {path}: {error.strerror}; choose another file") from error
    return path


def to_html(report: Report) -> str:
    """Return the page as text."""
    most = max((len(shifts_of(part.panels)) for part in report.parts), default=0)
    style = Markup(f"{_resource('style.css')}{pane_rules(most)}\n")
    script = Markup(_resource("script.js"))
    return "<!DOCTYPE html>\n" + tag("html", _head(report, style, script), _body(report, script), lang="en") + "\n"


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _head(report: Report, style: Markup, script: Markup) -> Markup:
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"synaptune {__version__}"),
        tag("title", report.title),
        tag("link", rel="icon", href="data:,"),
        tag("style", style),
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _body(report: Report, script: Markup) -> Markup:
    colours = _colours(report)
    return tag(
        "body",
        tag("a", "Skip to the summary", href="#summary", class_="skip"),
        tag("header", tag("h1", report.title), _navigation(report) if len(report.parts) > 1 else None),
        tag("main", _summary(report), *_parts(report, colours), _terms()),
        tag("footer", tag("p", f"Written by synaptune {__version__}. This file needs no network and no other file.")),
        tag("script", script),
    )


def _navigation(report: Report) -> Markup:
    links = [("summary", "Summary"), *((f"s{place}", part.title) for place, part in enumerate(report.parts))]
    items = [tag("li", tag("a", title, href=f"#{ident}")) for ident, title in [*links, ("terms", "How to read this")]]
    return tag("nav", tag("ul", *items), aria_label="Parts of the report")


def _summary(report: Report) -> Markup:
    notes = [tag("li", unbroken(note)) for note in report.summary.notes]
    return tag(
        "section",
        tag("h2", unbroken(report.summary.headline), id="summary-title"),
        tag("ul", *notes, class_="notes") if notes else None,
        findings_view(report.remarks),
        class_="summary",
        id="summary",
        aria_labelledby="summary-title",
    )


def _parts(report: Report, colours: dict[str, str]) -> Iterator[Markup]:
    is_only = len(report.parts) == 1
    for place, section in enumerate(report.sections):
        yield section_view(section, ident=f"s{place}", colours=colours, is_only=is_only, command=report.command)
    for place, stream in enumerate(report.streams, start=len(report.sections)):
        yield stream_view(stream, ident=f"s{place}", colours=colours, is_only=is_only)


def _terms() -> Markup:
    pairs = [joined((tag("dt", name), tag("dd", text))) for name, text in _TERMS]
    heading = tag("h2", "How to read this", id="terms-title")
    return tag(
        "section", heading, tag("dl", *pairs, class_="terms"), class_="part", id="terms", aria_labelledby="terms-title"
    )


def _colours(report: Report) -> dict[str, str]:
    """Give each method a colour class: the source is grey, the others take turns."""
    colours = {SOURCE: "m0"}
    for place, method in enumerate(method for method in report.methods if method != SOURCE):
        turn, colour = divmod(place, _COLOURS - 1)
        colours[method] = f"m{colour + 1}{' second' if turn % 2 else ''}"
    return colours
