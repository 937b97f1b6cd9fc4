"""The callback contract: an observer hears what the adapter did, after it is done, and changes nothing.

Whatever a callback does wrong stays with the callback: the adapter has finished its step, a reset or an undo before it
tells anyone, and an exception becomes a warning.
"""

from __future__ import annotations

import logging
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from torch import Tensor

from synaptune.core.history import BatchRecord
from synaptune.errors import OptionError

if TYPE_CHECKING:
    from synaptune.core.adapter import Adapter

__all__ = ["Callback", "CallbackWarning", "Callbacks"]

_LOGGER = logging.getLogger(__name__)


class CallbackWarning(UserWarning):
    """A callback raised; the adapter went on without it."""


class Callback:
    """An observer of an adapter. Subclasses override what they want to hear; the rest does nothing.

    >>> class Entropies(Callback):
    ...     def __init__(self):
    ...         self.values = []
    ...
    ...     def on_batch(self, record, logits):
    ...         self.values.append(record.entropy)
    """

    def on_attach(self, adapter: Adapter) -> None:
        """Hear that an adapter is ready: its model, method and options can be read, and must not be changed."""

    def on_batch(self, record: BatchRecord, logits: Tensor) -> None:
        """Hear of a batch.

        Args:
            record: what the adapter did; the same value is in its history.
            logits: what it returned, detached, (images, classes); images that were skipped are left out. The tensor
                is a copy, shared among the callbacks.
        """

    def on_reset(self) -> None:
        """Hear that the model is back at its source state, asked for by the user or by a guard."""

    def on_detach(self) -> None:
        """Hear that the model was given back; the last call, unless the callback is attached again."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # Files and connections have no copy; the copy of an adapter reports to the same place.
        return self


class Callbacks(Callback):
    """Several callbacks as one, in their order, each on its own: when one raises, the others still hear.

    >>> Callbacks([print])
    Traceback (most recent call last):
    ...
    synaptune.errors.OptionError: callbacks must be objects of class synaptune.callbacks.Callback, but \
number 1 is builtin_function_or_method; derive a class from Callback and pass an object of it
    """

    def __init__(self, members: Sequence[Callback] = ()):
        for number, member in enumerate(members, start=1):
            if not isinstance(member, Callback):
                raise OptionError(
                    "callbacks must be objects of class synaptune.callbacks.Callback, but "
                    f"number {number} is {_describe(member)}; derive a class from Callback and pass an object of it"
                )
        self.members = tuple(members)

    def on_attach(self, adapter: Adapter) -> None:
        self._tell("on_attach", lambda member: member.on_attach(adapter))

    def on_batch(self, record: BatchRecord, logits: Tensor) -> None:
        if self.members:
            # What the user gets must not depend on what a callback does to its argument.
            copy = logits.detach().clone()
            self._tell("on_batch", lambda member: member.on_batch(record, copy))

    def on_reset(self) -> None:
        self._tell("on_reset", lambda member: member.on_reset())

    def on_detach(self) -> None:
        self._tell("on_detach", lambda member: member.on_detach())

    def _tell(self, what: str, call: Callable[[Callback], None]) -> None:
        for member in self.members:
            try:
                call(member)
            except Exception as error:  # whatever an observer does wrong is no harm to the stream
                _LOGGER.info("%s.%s raised", type(member).__name__, what, exc_info=error)
                warnings.warn(_complaint(member, what, error), CallbackWarning, stacklevel=4)


def _describe(value: object) -> str:
    return f"the class {value.__name__} itself" if isinstance(value, type) else type(value).__name__


def _complaint(member: Callback, what: str, error: Exception) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"{type(member).__name__}.{what} raised {type(error).__name__}: {error} ({place.filename}, line "
        f"{place.lineno}); the adapter and its predictions are unharmed, but this report is lost"
    )
