"""Which textures frost uses, and that recipes tell apart whatever gives other pixels."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from synaptune.errors import DataError
from synaptune.shifts import GENERATOR_VERSION, CorruptionRecipe, corrupt, frost_source, ice
from tests.unit.shifts.conftest import picture_like

FILES = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")


def put_textures(folder: Path, *, value: int = 100) -> None:
    folder.mkdir(parents=True)
    for number, name in enumerate(FILES):
        texture = np.full((300, 260, 3), value + number, dtype=np.uint8)
        Image.fromarray(texture).save(folder / name)


def test_without_photographs_ice_is_grown(no_photographs: Path) -> None:
    assert ice.frost_folder() is None
    assert frost_source() == "procedural-1"
    textures = ice.ice_textures(1, 224, 224)
    assert len(textures) == 5
    for texture in textures:
        assert min(texture.shape) > 224
        assert texture.pixels.dtype == np.uint8
        assert texture.pixels.std() > 10
    # As bright as the photographs, and bluish.
    assert np.mean([texture.pixels.mean() for texture in textures]) == pytest.approx(160, abs=8)
    assert all(texture.pixels[..., 2].mean() > texture.pixels[..., 0].mean() for texture in textures)


@pytest.mark.parametrize(
    ("variable", "inside"),
    [("SYNAPTUNE_DATA", "frost"), ("SYNAPTUNE_SHARED", "data/frost"), ("SYNAPTUNE_SHARED", "frost")],
)
def test_photographs_are_found_where_data_is(
    variable: str, inside: str, no_photographs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_textures(no_photographs / "mine" / inside)
    monkeypatch.setenv(variable, str(no_photographs / "mine"))
    assert ice.frost_folder() == no_photographs / "mine" / inside
    assert frost_source().startswith("files-")


def test_an_incomplete_folder_does_not_count(no_photographs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_textures(no_photographs / "mine" / "frost")
    (no_photographs / "mine" / "frost" / "frost3.png").unlink()
    monkeypatch.setenv("SYNAPTUNE_DATA", str(no_photographs / "mine"))
    assert frost_source() == "procedural-1"


def test_an_installed_imagecorruptions_is_read_but_not_imported(
    no_photographs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = no_photographs / "site" / "imagecorruptions"
    put_textures(package / "frost")
    (package / "__init__.py").write_text("raise ImportError('pkg_resources')")
    monkeypatch.syspath_prepend(str(package.parent))
    assert ice.frost_folder() == package / "frost"
    assert "imagecorruptions" not in sys.modules


def test_frost_takes_the_files_that_are_there(no_photographs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    black = np.zeros((40, 32, 32, 3), dtype=np.uint8)
    grown = corrupt(black, "frost", 5)
    put_textures(no_photographs / "mine" / "frost")
    monkeypatch.setenv("SYNAPTUNE_DATA", str(no_photographs / "mine"))
    frosted = corrupt(black, "frost", 5)
    assert not np.array_equal(frosted, grown)
    # Five flat textures of 100 to 104, times 0.45: each image got one of them, and all were chosen.
    assert set(np.unique(frosted)) == {45, 46}
    assert len(np.unique(frosted[:, 0, 0, 0])) == 2


def test_different_textures_have_different_names(no_photographs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipes = {CorruptionRecipe.of("frost", 5)}
    for value in (50, 100):
        put_textures(no_photographs / str(value) / "frost", value=value)
        monkeypatch.setenv("SYNAPTUNE_DATA", str(no_photographs / str(value)))
        recipes.add(CorruptionRecipe.of("frost", 5))
    assert len({recipe.key for recipe in recipes}) == len({str(recipe) for recipe in recipes}) == 3


@pytest.mark.data
def test_the_published_photographs_are_recognised() -> None:
    if ice.frost_folder() is None:
        pytest.skip("the photographs of frost are not in the data folders")
    assert frost_source() == "published"
    assert [texture.shape for texture in ice.ice_textures(0.2, 32, 32)] == [
        (120, 180),
        (63, 112),
        (63, 112),
        (70, 105),
        (99, 132),
    ]


def test_textures_are_enlarged_for_images_that_are_larger(no_photographs: Path) -> None:
    for texture in ice.ice_textures(1, 700, 900):
        assert texture.shape[0] >= 700
        assert texture.shape[1] >= 900
    assert corrupt(picture_like(1, 60, 900), "frost", 3).shape == (1, 60, 900, 3)


def test_resizing_by_whole_numbers_picks_pixels() -> None:
    texture = np.random.default_rng(0).integers(0, 256, (50, 60, 3)).astype(np.uint8)
    assert np.array_equal(ice._resized(texture, 0.2), texture[2::5, 2::5])


def test_a_window_of_an_enlarged_texture_is_cut_from_the_whole() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (50, 60, 3)).astype(np.uint8)
    texture = ice.Texture(pixels, 2.7)
    assert texture.shape == (135, 162)
    whole = ice._resized(pixels, 2.7)
    assert whole.shape == (135, 162, 3)
    assert np.array_equal(texture.window(20, 31, 100, 90), whole[20:120, 31:121])
    assert np.array_equal(ice.Texture(pixels).window(3, 4, 20, 30), pixels[3:23, 4:34])


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"size": 32}, {"severity": 4}, {"name": "fog"}], ids=lambda change: next(iter(change))
)
def test_whatever_changes_pixels_changes_the_recipe(change: dict[str, object]) -> None:
    fields: dict[str, object] = {"name": "snow", "severity": 5, "seed": 0, "size": None}
    base = CorruptionRecipe.of(**fields)  # type: ignore[arg-type]
    other = CorruptionRecipe.of(**{**fields, **change})  # type: ignore[arg-type]
    assert base != other
    assert base.key != other.key
    assert str(base) != str(other)
    assert base == CorruptionRecipe.of(**fields)  # type: ignore[arg-type]


def test_recipes_carry_the_generator_and_only_frost_its_textures() -> None:
    assert CorruptionRecipe.of("snow", 1).as_dict() == {
        "name": "snow",
        "severity": 1,
        "size": None,
        "seed": 0,
        "generator": GENERATOR_VERSION,
        "frost": None,
    }
    assert CorruptionRecipe.of("frost", 1).frost == frost_source()


@pytest.mark.parametrize("content", [b"", b"junk"], ids=["empty", "junk"])
def test_a_damaged_photograph_is_named(content: bytes, no_photographs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_textures(no_photographs / "mine" / "frost")
    (no_photographs / "mine" / "frost" / "frost3.png").write_bytes(content)
    monkeypatch.setenv("SYNAPTUNE_DATA", str(no_photographs / "mine"))
    with pytest.raises(DataError, match=r"photograph of ice .*frost3\.png cannot be read.*put the published file"):
        corrupt(np.zeros((1, 32, 32, 3), np.uint8), "frost", 5)
