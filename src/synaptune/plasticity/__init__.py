"""Plasticity rules as pure functions: what to add to a layer's weight after it has seen a batch.

One rule per file, each from `(weight, input)` to the update. No labels, no gradients, no state.
"""

from synaptune.plasticity.competition import Sign
from synaptune.plasticity.engine import Border, Centre, Reduce
from synaptune.plasticity.krotov_hopfield import krotov_hopfield_update
from synaptune.plasticity.nhl import Reading, TemperatureOn, nhl_update
from synaptune.plasticity.oja import oja_update
from synaptune.plasticity.radius import RadiusKind, project, radius_of
from synaptune.plasticity.softhebb import softhebb_update
from synaptune.plasticity.synapses import Convolution, Dense, Synapses, require_plastic, synapses_of

__all__ = [
    "Border",
    "Centre",
    "Convolution",
    "Dense",
    "RadiusKind",
    "Reading",
    "Reduce",
    "Sign",
    "Synapses",
    "TemperatureOn",
    "krotov_hopfield_update",
    "nhl_update",
    "oja_update",
    "project",
    "radius_of",
    "require_plastic",
    "softhebb_update",
    "synapses_of",
]
