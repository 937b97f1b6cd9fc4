"""Predict one's own images while adapting: from files, lists and videos to a table that can be resumed."""

from synaptune.predicting.interrupts import DeferredInterrupts
from synaptune.predicting.items import FileItem, Item, Items, find_items
from synaptune.predicting.labels import Labels, read_labels
from synaptune.predicting.preprocessing import Preprocessing
from synaptune.predicting.rows import RowMaker
from synaptune.predicting.run import PredictionRun, Progress, Summary
from synaptune.predicting.table import open_table

__all__ = [
    "DeferredInterrupts",
    "FileItem",
    "Item",
    "Items",
    "Labels",
    "PredictionRun",
    "Preprocessing",
    "Progress",
    "RowMaker",
    "Summary",
    "find_items",
    "open_table",
    "read_labels",
]
