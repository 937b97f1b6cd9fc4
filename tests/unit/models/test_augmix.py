"""AugMix's operations against Pillow's, and its mixing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from torch import Tensor

from synaptune.models.augment import random_crop, random_mirror, random_resized_crop, random_rotation, rotate, to_float
from synaptune.models.augmix import augmix, jensen_shannon, operations


def photographs(count: int = 8, size: int = 32, *, seed: int = 0) -> Tensor:
    """Smooth random images with different ranges, (n, h, w, 3) uint8."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.rand(count, 3, 5, 5, generator=generator)
    fine = torch.nn.functional.interpolate(coarse, size, mode="bicubic", align_corners=False).clamp(0, 1)
    low, high = torch.rand(2, count, 3, 1, 1, generator=generator).sort(0).values * 255
    return (low + fine * (high - low)).byte().permute(0, 2, 3, 1).contiguous()


def pillow(images: Tensor) -> list[Image.Image]:
    return [Image.fromarray(image.numpy()) for image in images]


def apply(name: str, images: Tensor, level: float, sign: int = 1) -> Tensor:
    count = len(images)
    levels, signs = torch.full((count,), level), torch.full((count,), sign)
    return operations()[name](images.permute(0, 3, 1, 2), levels, signs).permute(0, 2, 3, 1)


def assert_equals_pillow(mine: Tensor, theirs: list[Image.Image], *, atol: int = 0) -> None:
    expected = torch.from_numpy(np.stack([np.asarray(image) for image in theirs])).int()
    assert (mine.int() - expected).abs().max() <= atol


def test_equalise_is_pillows_bit_for_bit() -> None:
    images = torch.cat([photographs(), torch.full((1, 32, 32, 3), 77, dtype=torch.uint8)])
    assert_equals_pillow(apply("equalise", images, 3.0), [ImageOps.equalize(image) for image in pillow(images)])


def test_autocontrast_is_pillows_up_to_rounding() -> None:
    images = torch.cat([photographs(), torch.full((1, 32, 32, 3), 77, dtype=torch.uint8)])
    assert_equals_pillow(
        apply("autocontrast", images, 3.0), [ImageOps.autocontrast(image) for image in pillow(images)], atol=1
    )


@pytest.mark.parametrize(("level", "bits"), [(0.5, 4), (3.0, 3), (10.0, 0)])
def test_posterise_keeps_four_bits_at_most(level: float, bits: int) -> None:
    images = photographs()
    assert torch.equal(apply("posterise", images, level), images & (0xFF << (8 - bits)) & 0xFF)


@pytest.mark.parametrize(("level", "threshold"), [(0.1, 254), (3.0, 180), (10.0, 0)])
def test_solarise_inverts_above_its_threshold(level: float, threshold: int) -> None:
    images = photographs()
    assert_equals_pillow(
        apply("solarise", images, level), [ImageOps.solarize(image, threshold) for image in pillow(images)]
    )


@pytest.mark.parametrize(
    ("name", "level", "sign", "matrix"),
    [
        ("translate_x", 3.0, 1, (1, 0, 3, 0, 1, 0)),
        ("translate_x", 3.0, -1, (1, 0, -3, 0, 1, 0)),
        ("translate_y", 9.9, 1, (1, 0, 0, 0, 1, 10)),
        # Pillow shears about the corner, the affine grid about the centre: 15.5 * 0.3 * level / 10 apart.
        ("shear_x", 10.0, 1, (1, 0.3, -15.5 * 0.3, 0, 1, 0)),
        ("shear_y", 10.0, -1, (1, 0, 0, -0.3, 1, 15.5 * 0.3)),
    ],
)
def test_geometry_samples_where_pillow_does(name: str, level: float, sign: int, matrix: tuple[float, ...]) -> None:
    images = photographs()
    theirs = [
        image.transform((32, 32), Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR) for image in pillow(images)
    ]
    mine = apply(name, images, level, sign)
    expected = torch.from_numpy(np.stack([np.asarray(image) for image in theirs])).int()
    # Pillow leaves pixels black whose neighbours are partly outside; inside, both interpolate alike.
    inside = (expected > 0) & (mine > 0)
    inside[:, [0, -1]] = False
    inside[:, :, [0, -1]] = False
    assert inside.float().mean() > 0.4
    assert ((mine.int() - expected).abs()[inside] > 6).float().mean() < 0.02


def test_rotation_by_thirty_degrees_keeps_the_centre_and_blackens_the_corners() -> None:
    image = torch.zeros(1, 33, 33, 3, dtype=torch.uint8)
    image[:, 16] = 200  # a horizontal line
    turned = apply("rotate", torch.full_like(image, 255), 10.0)
    assert turned[0, 16, 16, 0] == 255
    assert turned[0, 0, 0, 0] == 0
    line = apply("rotate", image, 10.0)[0, :, :, 0].float()
    ends = line[:, 16 + 8].argmax() - line[:, 16 - 8].argmax()
    assert abs(ends) == pytest.approx(16 * np.tan(np.pi / 6), abs=1.5)
    opposite = apply("rotate", image, 10.0, -1)[0, :, :, 0].float()
    assert opposite[:, 16 + 8].argmax() - opposite[:, 16 - 8].argmax() == -ends


def test_augmix_is_repeatable_and_depends_on_the_seed() -> None:
    images = photographs()
    first = augmix(images, torch.Generator().manual_seed(1))
    assert torch.equal(first, augmix(images, torch.Generator().manual_seed(1)))
    assert not torch.equal(first, augmix(images, torch.Generator().manual_seed(2)))


def test_augmix_gives_images_in_the_unit_range_that_stay_near_their_own() -> None:
    images = photographs(32)
    mixed = augmix(images, torch.Generator().manual_seed(0))
    assert mixed.shape == (32, 3, 32, 32)
    assert mixed.min() >= 0
    assert mixed.max() <= 1 + 1e-6
    own = (mixed - to_float(images)).abs().mean((1, 2, 3))
    others = (mixed - to_float(images.roll(1, 0))).abs().mean((1, 2, 3))
    assert (own < others).float().mean() > 0.9


def test_augmix_leaves_its_input_alone() -> None:
    images = photographs()
    before = images.clone()
    augmix(images, torch.Generator().manual_seed(0))
    assert torch.equal(images, before)


def test_jensen_shannon_equals_its_definition() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = [torch.randn(6, 4, generator=generator, dtype=torch.float64) for _ in range(3)]
    p = [row.softmax(1) for row in logits]
    mean = (p[0] + p[1] + p[2]) / 3
    expected = sum((q * (q / mean).log()).sum(1).mean() for q in p) / 3
    assert jensen_shannon(logits).item() == pytest.approx(expected.item(), rel=1e-9)


@pytest.mark.parametrize("gap", [10.0, 104.0, 200.0])
def test_jensen_shannon_has_finite_gradients_where_probabilities_vanish(gap: float) -> None:
    rows = [[gap, 0.0, -1.0], [gap - 1, 0.0, 1.0], [0.0, gap, 0.5]]
    gradients = []
    for kind in (torch.float32, torch.float64):
        logits = [torch.tensor([row], dtype=kind, requires_grad=True) for row in rows]
        loss = jensen_shannon(logits)
        loss.backward()
        assert loss.isfinite()
        gradients.append(torch.cat([row.grad.double() for row in logits if row.grad is not None]))
    assert gradients[0].isfinite().all()
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-4, atol=1e-7)


def test_crops_are_windows_of_the_padded_image() -> None:
    images = photographs(16, 8)
    cropped = random_crop(images, torch.Generator().manual_seed(0), padding=2)
    padded = torch.nn.functional.pad(images, (0, 0, 2, 2, 2, 2))
    offsets = set()
    for image, crop in zip(padded, cropped, strict=True):
        hits = [(y, x) for y in range(5) for x in range(5) if torch.equal(image[y : y + 8, x : x + 8], crop)]
        assert hits
        offsets.add(hits[0])
    assert len(offsets) > 8


def test_resized_parts_are_what_pillow_cuts_and_scales() -> None:
    from synaptune.models.augment import _parts

    images = photographs(64, 40)
    scaled = random_resized_crop(images, torch.Generator().manual_seed(3), size=(40, 40))
    boxes = _parts(64, 40, 40, torch.Generator().manual_seed(3))
    shares = boxes[:, 2] * boxes[:, 3] / 1600
    assert (shares.min() < 0.2, shares.max() > 0.8) == (True, True)
    assert ((boxes[:, :2] >= 0) & (boxes[:, :2] + boxes[:, 2:] <= 40)).all()
    ratios = boxes[:, 3] / boxes[:, 2]
    assert ((ratios > 0.65) & (ratios < 1.55)).all()  # 3/4 and 4/3, rounded to pixels
    for image, box, result in zip(images, boxes.tolist(), scaled, strict=True):
        top, left, tall, wide = map(int, box)
        part = Image.fromarray(image[top : top + tall, left : left + wide].numpy())
        expected = torch.from_numpy(np.array(part.resize((40, 40), Image.Resampling.BILINEAR))).int()
        # At the part's border ours sees the pixel beyond, and Pillow repeats the last.
        assert (result.int() - expected)[3:-3, 3:-3].abs().max() <= 2


def test_a_very_long_image_has_no_part_and_is_taken_whole() -> None:
    images = torch.arange(100, dtype=torch.uint8)[None, None, :, None].expand(2, 1, 100, 3)
    scaled = random_resized_crop(images, torch.Generator().manual_seed(0), size=(1, 100))
    assert torch.equal(scaled, images)


def test_mirroring_turns_about_half_of_the_images() -> None:
    images = photographs(64, 8)
    mirrored = random_mirror(images, torch.Generator().manual_seed(0))
    turned = [torch.equal(new, old.flip(1)) for new, old in zip(mirrored, images, strict=True)]
    kept = [torch.equal(new, old) for new, old in zip(mirrored, images, strict=True)]
    assert all(one or other for one, other in zip(turned, kept, strict=True))
    assert 20 < sum(turned) < 44


def test_rotations_are_counter_clockwise_quarters() -> None:
    images = photographs(32, 8)
    turned, quarters = random_rotation(images, torch.Generator().manual_seed(0))
    assert set(quarters.tolist()) == {0, 1, 2, 3}
    for old, new, quarter in zip(images, turned, quarters.tolist(), strict=True):
        assert np.array_equal(np.rot90(old.numpy(), quarter), new.numpy())
    assert torch.equal(rotate(images, torch.zeros(32, dtype=torch.long)), images)
