"""Numbers from predictions and labels, and from clocks: errors, calibration, latency, memory, intervals.

Errors and calibration errors are in percent, as the papers print them. Nothing here sees a model.
"""

from synaptune.metrics.calibration import Reliability, expected_calibration_error, reliability
from synaptune.metrics.intervals import Interval, bootstrap_interval
from synaptune.metrics.latency import Latency, latency
from synaptune.metrics.memory import PeakMemory
from synaptune.metrics.tally import Tally

__all__ = [
    "Interval",
    "Latency",
    "PeakMemory",
    "Reliability",
    "Tally",
    "bootstrap_interval",
    "expected_calibration_error",
    "latency",
    "reliability",
]
