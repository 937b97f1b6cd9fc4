"""Corrupted copies of images on disk: where `data` reads, `shifts` corrupts, and this package writes."""

from synaptune.corrupting.writing import WriteReport as WriteReport
from synaptune.corrupting.writing import write_corrupted as write_corrupted
