"""SVHN, cropped digits (Netzer et al., 2011): MATLAB files with X (32, 32, 3, n) and y (n, 1), where 10 means 0."""

from __future__ import annotations

import numpy as np

from synaptune.data.dataset import DataSet
from synaptune.data.entry import Request
from synaptune.data.extras import need
from synaptune.data.recipe import Recipe
from synaptune.errors import DataError

__all__ = ["read_svhn"]


def read_svhn(request: Request) -> DataSet:
    """Read one .mat file; labels are the digits 0 to 9."""
    (path,) = request.paths
    matlab = need("scipy.io", "the SVHN files (.mat)")
    try:
        content = matlab.loadmat(path, variable_names=("X", "y"))
        pixels, labels = np.asarray(content["X"]), np.asarray(content["y"]).reshape(-1)
    except Exception as error:
        raise DataError(f"{path} is not a complete MATLAB file of SVHN ({error}); get it again") from error
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[-1] != len(labels):
        raise DataError(f"{path}: X is {pixels.dtype} {pixels.shape} with {len(labels)} labels; this is not SVHN")
    return DataSet(
        name=request.name,
        split=request.split,
        images=np.ascontiguousarray(pixels.transpose(3, 0, 1, 2)),
        labels=labels.astype(np.int64) % 10,
        classes=request.classes,
        origin=Recipe.of(read="MATLAB file", labels="10 is digit 0"),
    )
