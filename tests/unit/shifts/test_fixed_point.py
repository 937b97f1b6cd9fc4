"""Exact filtering: borders, weights, and sums that do not depend on their order."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from synaptune.shifts.fixed_point import (
    SEPARABLE_BITS,
    SINGLE_PASS_BITS,
    Border,
    border_indices,
    correlate,
    filter_matrix,
    gaussian_kernel,
    quantise_weights,
    smooth_planes,
    to_bytes,
    to_images,
    to_planes,
)


@pytest.mark.parametrize(("border", "numpy_mode"), [("edge", "edge"), ("reflect", "symmetric"), ("mirror", "reflect")])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_borders_are_those_of_numpys_padding(
    border: Border, numpy_mode: Literal["edge", "symmetric", "reflect"], size: int
) -> None:
    # Two pixels of a mirrored line have no third to mirror, but NumPy and we agree on repeated folding.
    reach = 20
    expected = np.pad(np.arange(size), reach, mode=numpy_mode)
    assert np.array_equal(border_indices(np.arange(-reach, size + reach), size, border), expected)


@pytest.mark.parametrize("bits", [SINGLE_PASS_BITS, SEPARABLE_BITS])
def test_quantised_weights_sum_to_one_and_stay_close(bits: int) -> None:
    weights = np.random.default_rng(0).random((17, 17))
    quantised = quantise_weights(weights, bits)
    assert quantised.sum() == 1
    assert np.array_equal(quantised * 2**bits, np.round(quantised * 2**bits))
    assert np.abs(quantised - weights / weights.sum()).max() <= 2.0**-bits


def test_a_filter_matrix_filters_a_line() -> None:
    kernel = np.array([0.25, 0.5, 0.25])
    line = np.array([4.0, 8.0, 0.0, 4.0])
    assert (filter_matrix(4, kernel, "edge") @ line).tolist() == [5.0, 5.0, 3.0, 3.0]
    assert (filter_matrix(4, kernel, "mirror") @ line).tolist() == [6.0, 5.0, 3.0, 2.0]


def test_smoothing_is_exact_whatever_is_in_the_batch() -> None:
    planes = np.random.default_rng(0).integers(0, 256, (9, 3, 40, 28)).astype(np.float64)
    together = smooth_planes(planes, 1.3, border="edge")
    for index in range(9):
        assert np.array_equal(smooth_planes(planes[index : index + 1], 1.3, border="edge")[0], together[index])
    # Exact means that another order of summation gives the same bits.
    weights = filter_matrix(28, gaussian_kernel(1.3), "edge")
    one_by_one = np.zeros_like(planes)
    for column in reversed(range(28)):
        one_by_one += planes[..., column, None] * weights[:, column]
    assert np.array_equal(one_by_one, planes @ weights.T)


@pytest.mark.parametrize(("border", "mode"), [("edge", "nearest"), ("reflect", "reflect"), ("mirror", "mirror")])
@pytest.mark.parametrize(("sigma", "truncate"), [(0.4, 4.0), (1.5, 4.0), (6.0, 3.0), (30.0, 3.0)])
def test_smoothing_is_scipys_gaussian_filter(border: Border, mode: str, sigma: float, truncate: float) -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    plane = np.random.default_rng(0).integers(0, 256, (32, 45)).astype(np.float64)
    expected = ndimage.gaussian_filter(plane, sigma, mode=mode, truncate=truncate)
    assert np.abs(smooth_planes(plane, sigma, border=border, truncate=truncate) - expected).max() < 0.02


@pytest.mark.parametrize("border", ["edge", "reflect", "mirror"])
@pytest.mark.parametrize("sigma", [0.4, 20.0, 60.0, 400.0])  # in blocks of 256, 256 and 480, and as one
def test_long_lines_are_smoothed_block_by_block_with_the_same_bits(border: Border, sigma: float) -> None:
    planes = np.random.default_rng(0).integers(0, 256, (2, 1130, 3)).astype(np.float64)
    kernel = gaussian_kernel(sigma)
    down, across = filter_matrix(1130, kernel, border), filter_matrix(3, kernel, border)
    assert np.array_equal(smooth_planes(planes, sigma, border=border), down @ (planes @ across.T))


@pytest.mark.parametrize("border", ["edge", "reflect", "mirror"])
@pytest.mark.parametrize(("bits", "side"), [(SINGLE_PASS_BITS, 3), (SINGLE_PASS_BITS, 21), (24, 9)])
def test_the_fourier_transform_gives_exact_sums(border: Border, bits: int, side: int) -> None:
    generator = np.random.default_rng(0)
    planes = generator.integers(0, 256, (2, 40, 67)).astype(np.float64)
    kernel = quantise_weights(generator.random((side, side)) ** 4, bits)
    rows = border_indices(np.arange(-(side // 2), 40 + side // 2), 40, border)
    columns = border_indices(np.arange(-(side // 2), 67 + side // 2), 67, border)
    padded = planes.take(rows, axis=1).take(columns, axis=2)
    expected = sum(
        kernel[row, column] * padded[:, row : row + 40, column : column + 67]
        for row in range(side)
        for column in range(side)
    )
    assert np.array_equal(correlate(planes, kernel, bits=bits, border=border), expected)


def test_no_smoothing_where_the_kernel_is_a_single_pixel() -> None:
    planes = np.ones((1, 4, 4))
    assert smooth_planes(planes, 0.05, border="edge") is planes


def test_bytes_are_truncated_but_not_by_a_rounding_error() -> None:
    values = np.array([-3.0, 0.999, 1.9999999, 2.5, 254.7, 300.0])
    assert to_bytes(values).tolist() == [0, 0, 2, 2, 254, 255]


def test_planes_and_images_are_inverse() -> None:
    images = np.random.default_rng(0).integers(0, 256, (2, 4, 5, 3)).astype(np.uint8)
    planes = to_planes(images, np.float32)
    assert planes.shape == (2, 3, 4, 5)
    assert planes.dtype == np.float32
    assert np.array_equal(to_images(planes.astype(np.uint8)), images)
