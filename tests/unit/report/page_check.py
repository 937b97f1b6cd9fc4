"""Reads a page as a strict parser would, and notes what a browser or a screen reader would stumble over."""

from __future__ import annotations

import re
from html.parser import HTMLParser

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
REFERRING = {"src", "href", "srcset", "action", "data", "poster", "xlink:href", "background", "formaction"}


class PageCheck(HTMLParser):
    """Feed it a page; `problems` lists what is wrong."""

    def __init__(self, page: str):
        super().__init__(convert_charrefs=True)
        self.problems: list[str] = []
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.ids: list[str] = []
        self.referred: list[str] = []
        self.headings: list[int] = []
        self.text: list[str] = []
        self.tags: list[str] = []
        self._children: list[list[str]] = [[]]
        if not page.startswith("<!DOCTYPE html>"):
            self.problems.append("no doctype")
        self.feed(page)
        self.close()
        self._finish()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        values = dict(attrs)
        self.tags.append(tag)
        self._children[-1].append(tag)
        if len(set(names)) != len(names):
            self.problems.append(f"<{tag}> has an attribute twice: {names}")
        self._note_references(tag, values)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "img" and not values.get("alt"):
            self.problems.append("img without alt")
        if any(name.startswith("on") for name in names):
            self.problems.append(f"<{tag}> has a script in an attribute: {names}")
        if "style" in names:
            self.problems.append(f"<{tag}> has a style attribute, which the policy refuses")
        if tag not in VOID:
            self.open.append((tag, values))
            self._children.append([])

    def _note_references(self, tag: str, values: dict[str, str | None]) -> None:
        if values.get("id") is not None:
            self.ids.append(str(values["id"]))
        for name in ("for", "aria-labelledby", "aria-describedby"):
            self.referred += (values.get(name) or "").split()
        for name in REFERRING & values.keys():
            value = values[name] or ""
            if value.startswith("#"):
                self.referred.append(value[1:])
            elif value != "data:,":
                self.problems.append(f"<{tag} {name}={value!r}> refers to something outside of the page")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.problems.append(f"<{tag}/> closes itself, which HTML ignores")

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1][0] != tag:
            self.problems.append(f"</{tag}> closes {self.open[-1][0] if self.open else 'nothing'}")
            return
        _, values = self.open.pop()
        children = self._children.pop()
        hidden = values.get("aria-hidden") == "true"
        if tag == "svg" and "title" not in children and not hidden:
            self.problems.append("svg without a title")
        if tag == "svg" and values.get("role") == "img" and "desc" not in children:
            self.problems.append("a drawing without a description")

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        inside = self.open[-1][0] if self.open else ""
        if inside == "style" and re.search(r"url\(|@import|https?:", data):
            self.problems.append("the style sheet refers to something outside of the page")
        if inside == "script" and re.search(r"fetch|XMLHttp|import\(|https?:", data):
            self.problems.append("the script refers to something outside of the page")

    def _finish(self) -> None:
        self.problems += [f"<{tag}> is never closed" for tag, _ in self.open]
        self.problems += [f"id {ident!r} stands twice" for ident in {i for i in self.ids if self.ids.count(i) > 1}]
        self.problems += [f"nothing has the id {name!r}" for name in set(self.referred) - set(self.ids)]
        if self.headings.count(1) != 1:
            self.problems.append(f"{self.headings.count(1)} headings of level 1")
        jumps = [(a, b) for a, b in zip(self.headings, self.headings[1:], strict=False) if b > a + 1]
        if jumps:
            self.problems.append(f"headings skip levels: {jumps}")

    @property
    def words(self) -> str:
        """All text, in one line."""
        return " ".join(" ".join(self.text).split())
