"""Methods, one file each. Importing this package registers them, in the order in which tables list them."""

from synaptune.algorithms.source import Source  # isort: split

from synaptune.algorithms.norm import Norm  # isort: split

from synaptune.algorithms.tent import Tent  # isort: split

from synaptune.algorithms.dua import Dua  # isort: split

from synaptune.algorithms.ttt import Ttt  # isort: split

from synaptune.algorithms.nhl import NHL

__all__ = ["NHL", "Dua", "Norm", "Source", "Tent", "Ttt"]
