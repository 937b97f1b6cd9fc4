"""Guards: small judges of a step, usable with every method."""

from synaptune.guards.finite import Finite

__all__ = ["Finite"]
