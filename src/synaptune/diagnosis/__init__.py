"""What will happen to a model before anything is changed: its parts, what fits it, what it costs, what to beware of."""

from synaptune.diagnosis.examine import doctor
from synaptune.diagnosis.expectation import Expectation, expected_input
from synaptune.diagnosis.record import Diagnosis

__all__ = ["Diagnosis", "Expectation", "doctor", "expected_input"]
