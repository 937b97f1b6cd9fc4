"""Common corruptions: the published benchmark's shifts, made here, fast, seeded and bit-stable."""

from synaptune.shifts.corruption import CORRUPTIONS as CORRUPTIONS
from synaptune.shifts.corruption import EXTRA_CORRUPTIONS as EXTRA_CORRUPTIONS
from synaptune.shifts.corruption import SEVERITIES as SEVERITIES
from synaptune.shifts.corruption import corrupt as corrupt
from synaptune.shifts.corruption import names as names
from synaptune.shifts.ice import frost_source as frost_source
from synaptune.shifts.recipe import GENERATOR_VERSION as GENERATOR_VERSION
from synaptune.shifts.recipe import CorruptionRecipe as CorruptionRecipe
from synaptune.shifts.transform import Corrupt as Corrupt
