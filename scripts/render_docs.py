"""Renew the parts of the documentation that are made from the code and lie in its files.

    python scripts/render_docs.py           # every part between `<!-- made: NAME -->` and `<!-- end -->`

Needs the extra `docs`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs" / "hooks"))

from hook import renewed  # noqa: E402  # lies in the folder of the site's hooks


def pages() -> Iterator[tuple[Path, str]]:
    """Files of the documentation, and their text with every part renewed."""
    for path in sorted((ROOT / "docs").rglob("*.md")):
        yield path, renewed(path.read_text(encoding="utf-8"))


def main() -> None:
    """Write those that have changed."""
    for path, text in pages():
        if text != path.read_text(encoding="utf-8"):
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
