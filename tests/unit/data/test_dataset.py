"""The value types: recipes, lazy images, data sets."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import numpy as np
import pytest

from synaptune.data import UNLABELLED, DataSet, LazyImages, Recipe
from synaptune.data.images import (
    JoinedImages,
    MappedImages,
    PixelsRead,
    Positions,
    SelectedImages,
    content_fingerprint,
    read_pixels,
)
from synaptune.errors import BadImageError, InputError


def noise(count: int, seed: int = 0, side: int = 4) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (count, side, side, 3), np.uint8)


class Flawed(LazyImages):
    """Images of which the odd ones cannot be read."""

    def __init__(self, pixels: Any):
        self.pixels = pixels

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return self.pixels.shape  # type: ignore[no-any-return]

    def read(self, positions: Positions) -> PixelsRead:
        readable = positions % 2 == 0
        return PixelsRead(self.pixels[positions[readable]], readable)

    def fingerprint(self) -> str:
        return content_fingerprint(self.pixels)


class TestRecipe:
    def test_the_digest_depends_on_every_value_and_not_on_their_order(self) -> None:
        recipe = Recipe.of(a=1, b=[1, 2.5, None], c=Recipe.of(d=True))
        assert recipe.digest == Recipe.of(c=Recipe.of(d=True), b=[1, 2.5, None], a=1).digest
        others = [
            Recipe.of(a=2, b=[1, 2.5, None], c=Recipe.of(d=True)),
            Recipe.of(a=1, b=[2.5, 1, None], c=Recipe.of(d=True)),
            Recipe.of(a=1, b=[1, 2.5, None], c=Recipe.of(d=False)),
            Recipe.of(a="1", b=[1, 2.5, None], c=Recipe.of(d=True)),
        ]
        assert len({recipe.digest, *(other.digest for other in others)}) == 5
        assert len({recipe, *others}) == 5, "recipes are hashable values"

    def test_the_digest_is_that_of_the_shortest_sorted_json(self) -> None:
        text = '{"name":"fog","severity":5,"size":[32,0.5,null],"über":true}'
        recipe = Recipe.of(severity=5, size=[32, 0.5, None], name="fog", über=True)
        assert recipe.digest == hashlib.sha256(text.encode("utf-8")).hexdigest()

    def test_nan_has_no_digest(self) -> None:
        with pytest.raises(ValueError, match="JSON"):
            Recipe.of(value=float("nan"))

    def test_it_prints_nested_values(self) -> None:
        recipe = Recipe.of(a=Recipe.of(b=[1, 2]), c=[{"d": 0.5}])
        assert str(recipe) == "a=(b=[1, 2]), c=[(d=0.5)]"


class TestLazyImages:
    @pytest.fixture(params=["joined", "selected", "mapped"])
    def pair(self, request: pytest.FixtureRequest) -> tuple[LazyImages, Any]:
        pixels = noise(9)
        made: dict[str, LazyImages] = {
            "joined": JoinedImages([pixels[:4], pixels[4:5], pixels[5:]]),
            "selected": SelectedImages(pixels[::-1], np.arange(9)[::-1]),
            "mapped": MappedImages(255 - pixels, lambda images, _: 255 - images, recipe=Recipe.of(invert=True)),
        }
        return made[request.param], pixels

    @pytest.mark.parametrize(
        "key",
        [
            0,
            -1,
            slice(None),
            slice(2, 7, 2),
            slice(None, None, -1),
            [5, 5, 0],
            np.array([8, 3]),
            np.arange(9) % 2 == 0,
            (3, 0, 1),
            (slice(1, 3), 0),
            ([2, 7], slice(None), 0, 2),
            [],
        ],
        ids=str,
    )
    def test_indexing_is_that_of_an_array(self, pair: tuple[LazyImages, Any], key: Any) -> None:
        lazy, pixels = pair
        expected = pixels[np.array(key, int) if key == [] else key] if not isinstance(key, np.ndarray) else pixels[key]
        picked = lazy[key]
        np.testing.assert_array_equal(picked, expected)
        assert picked.dtype == np.uint8

    def test_it_has_the_shape_of_an_array_and_becomes_one(self, pair: tuple[LazyImages, Any]) -> None:
        lazy, pixels = pair
        assert (lazy.shape, len(lazy), lazy.ndim, lazy.dtype) == (pixels.shape, 9, 4, np.uint8)
        np.testing.assert_array_equal(np.asarray(lazy), pixels)
        assert np.asarray(lazy, np.float32).dtype == np.float32

    def test_an_index_beyond_the_end_is_an_index_error(self, pair: tuple[LazyImages, Any]) -> None:
        with pytest.raises(IndexError):
            pair[0][9]

    def test_joined_arrays_have_the_fingerprint_of_one(self) -> None:
        pixels = noise(9)
        assert JoinedImages([pixels[:4], pixels[4:]]).fingerprint() == content_fingerprint(pixels)

    def test_a_mapping_gets_the_positions_of_its_images(self) -> None:
        lazy = MappedImages(
            np.zeros((300, 1, 1, 3), np.uint8),
            lambda images, positions: images + (positions % 256).astype(np.uint8)[:, None, None, None],
            recipe=Recipe.of(add="position"),
        )
        assert lazy[[299, 5]][:, 0, 0, 0].tolist() == [43, 5]

    def test_unreadable_images_are_left_out_and_marked_through_every_layer(self) -> None:
        pixels = noise(6)
        lazy = MappedImages(
            SelectedImages(JoinedImages([Flawed(pixels), pixels]), np.array([1, 2, 7, 3])),
            lambda images, positions: images,
            recipe=Recipe.of(),
        )
        found, readable = read_pixels(lazy, np.arange(4))
        assert readable.tolist() == [False, True, True, False]
        np.testing.assert_array_equal(found, pixels[[2, 1]])

    def test_indexing_an_unreadable_image_raises_with_its_position(self) -> None:
        with pytest.raises(BadImageError, match="1 of 2 images cannot be read, the first at position 3"):
            Flawed(noise(6))[2:4]

    def test_a_mapping_of_nothing_readable_is_empty(self) -> None:
        lazy = MappedImages(Flawed(noise(6)), lambda images, _: images[:1], recipe=Recipe.of())
        found, readable = lazy.read(np.array([1, 3]))
        assert (found.shape, readable.tolist()) == ((0, 4, 4, 3), [False, False])

    def test_arrays_of_different_size_cannot_be_joined(self) -> None:
        with pytest.raises(InputError):
            JoinedImages([noise(2), noise(2, side=5)])


class TestDataSet:
    def test_wrong_shapes_are_refused(self) -> None:
        for images, words in (
            (np.zeros((2, 4, 4)), "must be uint8"),
            (np.zeros((2, 3, 4, 4), np.uint8), "must be uint8"),
            (np.zeros((2, 4, 4, 3), np.float32), "must be uint8"),
        ):
            with pytest.raises(InputError, match=words):
                DataSet("toy", "", images, np.zeros(2, np.int64))  # type: ignore[arg-type]
        with pytest.raises(InputError, match="2 images but labels of shape"):
            DataSet("toy", "", noise(2), np.zeros(3, np.int64))

    @pytest.mark.parametrize(
        ("images", "advice"),
        [
            (
                np.zeros((2, 4, 4, 3), np.float32),
                "bring the values to 0..255 and convert them with astype(numpy.uint8)",
            ),
            (np.zeros((4, 5, 3), np.uint8), "a single image needs a leading axis: images[None]"),
            (np.zeros((2, 4, 4), np.uint8), "numpy.repeat(images[..., None], 3, axis=-1)"),
            (np.zeros((2, 4, 4, 1), np.uint8), "numpy.repeat(images, 3, axis=-1)"),
            (np.zeros((2, 3, 4, 4), np.uint8), "channels come last: images.transpose(0, 2, 3, 1)"),
            (np.zeros((2, 4, 4, 4), np.uint8), "leave the transparency out: images[..., :3]"),
        ],
        ids=["float", "single", "grey", "grey channel", "channels first", "transparent"],
    )
    def test_an_array_that_is_nearly_images_is_told_how_to_become_some(self, images: Any, advice: str) -> None:
        with pytest.raises(InputError, match=rf"; .*{re.escape(advice)}$"):
            DataSet("toy", "", images, np.zeros(len(images), np.int64))
        if images.dtype == np.uint8:
            cured = eval(advice.rpartition(": ")[2], {"images": images, "numpy": np})
            DataSet("toy", "", cured, np.zeros(len(cured), np.int64))

    def test_an_array_that_is_far_from_images_gets_no_advice(self) -> None:
        for shape in ((), (7,), (2, 48), (2, 4, 4, 7)):
            with pytest.raises(InputError, match=rf"not uint8 {re.escape(str(shape))}$"):
                DataSet("toy", "", np.zeros(shape, np.uint8), np.zeros(2, np.int64))

    def test_labels_without_class_names_must_be_numbers_of_classes_all_the_same(self) -> None:
        with pytest.raises(InputError, match=r"labels must be -1 \(unknown\) or more, found -5 to 3$"):
            DataSet("toy", "", noise(2), np.array([3, -5]))

    @pytest.mark.parametrize("labels", [[0, 2], [-2, 0]])
    def test_labels_must_fit_the_classes(self, labels: list[int]) -> None:
        with pytest.raises(InputError, match="labels must lie between"):
            DataSet("toy", "", noise(2), np.array(labels), ("cat", "dog"))

    def test_labels_are_the_sets_own_and_cannot_be_written(self) -> None:
        labels = np.array([0, 1])
        dataset = DataSet("toy", "", noise(2), labels, ("cat", "dog"))
        labels[0] = 1
        assert dataset.labels.tolist() == [0, 1]
        with pytest.raises(ValueError, match="read-only"):
            dataset.labels[0] = 1

    def test_the_fingerprint_follows_pixels_labels_and_classes(self) -> None:
        def of(seed: int = 0, labels: tuple[int, ...] = (0, 1), classes: tuple[str, ...] = ("cat", "dog")) -> str:
            return DataSet("toy", "", noise(2, seed), np.array(labels), classes).fingerprint

        prints = {of(), of(seed=1), of(labels=(1, 1)), of(classes=("cat", "cow"))}
        assert len(prints) == 4
        assert of() in prints

    def test_one_changed_bit_in_the_last_image_changes_the_fingerprint(self) -> None:
        pixels = noise(1500)
        before = content_fingerprint(pixels)
        pixels[-1, -1, -1, -1] ^= 1
        assert content_fingerprint(pixels) != before

    def test_a_strided_view_has_the_fingerprint_of_its_copy(self) -> None:
        view = noise(20).transpose(0, 2, 1, 3)[::2]
        assert content_fingerprint(view) == content_fingerprint(view.copy())

    def test_take_is_a_view_and_select_reads_nothing(self) -> None:
        pixels = noise(10)
        dataset = DataSet("toy", "", pixels, np.arange(10) % 2, ("cat", "dog"))
        first = dataset.take(4)
        assert isinstance(first.images, np.ndarray)
        assert np.shares_memory(first.images, pixels)
        chosen = dataset.select([7, 2])
        assert isinstance(chosen.images, SelectedImages)
        np.testing.assert_array_equal(chosen.images[:], pixels[[7, 2]])
        assert chosen.labels.tolist() == [1, 0]
        assert len(dataset.take(99)) == 10
        assert len(dataset.select([])) == 0

    def test_in_memory_drops_what_cannot_be_read(self) -> None:
        pixels = noise(6)
        loaded = DataSet("toy", "", Flawed(pixels), np.arange(6), tuple("abcdef")).in_memory()
        np.testing.assert_array_equal(loaded.images, pixels[::2])
        assert loaded.labels.tolist() == [0, 2, 4]

    def test_the_recipe_names_content_and_origin(self) -> None:
        dataset = DataSet("toy", "test", noise(2), np.array([0, 1]), ("cat", "dog"), Recipe.of(read="by hand"))
        fields = dataset.recipe.fields
        assert fields["content"] == dataset.fingerprint
        assert fields["origin"] == {"read": "by hand"}
        assert (fields["data"], fields["split"], fields["images"]) == ("toy", "test", 2)

    def test_unknown_labels_are_told_apart(self) -> None:
        assert not DataSet("toy", "", noise(2), np.array([UNLABELLED, 0]), ("cat",)).is_labelled
        assert DataSet("toy", "", noise(2), np.array([0, 0]), ("cat",)).is_labelled
