"""The conformance matrix: every registered method and preset on every tiny model that it accepts."""

from __future__ import annotations

import synaptune as st
from synaptune.errors import IncompatibleModelError
from tests.support.models import BUILDERS, build


def accepts(method: str, model: str) -> bool:
    """Tell whether a method accepts a model; a refusal must be an `IncompatibleModelError`."""
    try:
        st.adapt(build(model), method).detach()
    except IncompatibleModelError:
        return False
    return True


METHODS = [info.name for info in st.methods()]
CASES = [(method, model) for method in METHODS for model in BUILDERS if accepts(method, model)]
# The model on which a method shows what it does, for checks where one model is enough.
HOME = {method: next(m for m in ("bn", "rotation") if (method, m) in CASES) for method in METHODS}
