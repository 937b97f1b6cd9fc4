"""Whatever lies in a folder: read as a user expects, or skipped and reported."""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from synaptune.data import UNLABELLED, read_images
from synaptune.data.decode import Blob, Fit, ImageProblemError, decode, measure
from synaptune.data.folder import FileImages
from synaptune.data.images import read_pixels
from synaptune.errors import BadImageError, DataError, OptionError

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def gradient(height: int = 16, width: int = 24) -> Any:
    """Every corner of it is different, so that a turn or a flip shows."""
    rows, columns = np.mgrid[0:height, 0:width]
    return np.stack([rows * 255 // height, columns * 255 // width, (rows + columns) % 256], axis=-1).astype(np.uint8)


def save(path: Path, image: Image.Image | Any, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = image if isinstance(image, Image.Image) else Image.fromarray(image)
    picture.save(path, **options)
    return path


def pixels_of(path: Path) -> Any:
    return decode(Blob(path)).pixels


def steps_of(path: Path) -> tuple[str, ...]:
    return decode(Blob(path)).steps


class TestOneImage:
    def test_an_rgb_image_is_taken_as_it_is(self, tmp_path: Path) -> None:
        path = save(tmp_path / "a.png", gradient())
        np.testing.assert_array_equal(pixels_of(path), gradient())
        assert steps_of(path) == ()

    def test_grey_becomes_three_equal_channels(self, tmp_path: Path) -> None:
        grey = gradient()[..., 0]
        path = save(tmp_path / "a.png", grey)
        np.testing.assert_array_equal(pixels_of(path), np.repeat(grey[..., None], 3, axis=-1))
        assert steps_of(path) == ("grey to RGB",)

    def test_black_and_white_becomes_0_and_255(self, tmp_path: Path) -> None:
        bits = gradient()[..., 0] > 100
        path = save(tmp_path / "a.png", Image.fromarray(bits))
        np.testing.assert_array_equal(pixels_of(path)[..., 1], bits * 255)

    def test_a_palette_is_looked_up(self, tmp_path: Path) -> None:
        image = Image.new("P", (2, 1))
        image.putpalette([*RED, *GREEN])
        image.putdata([1, 0])
        assert pixels_of(save(tmp_path / "a.png", image)).tolist() == [[list(GREEN), list(RED)]]

    def test_a_palette_with_a_transparent_colour_shows_white(self, tmp_path: Path) -> None:
        image = Image.new("P", (2, 1))
        image.putpalette([*RED, *GREEN])
        image.putdata([1, 0])
        path = save(tmp_path / "a.gif", image, transparency=0)
        assert pixels_of(path).tolist() == [[list(GREEN), list(WHITE)]]

    def test_alpha_is_laid_over_white(self, tmp_path: Path) -> None:
        image = Image.new("RGBA", (3, 1))
        image.putdata([(*RED, 255), (*RED, 0), (0, 0, 0, 51)])
        path = save(tmp_path / "a.png", image)
        assert pixels_of(path).tolist() == [[list(RED), list(WHITE), [204, 204, 204]]]
        assert steps_of(path) == ("transparency laid over white",)

    def test_grey_with_alpha_is_laid_over_white(self, tmp_path: Path) -> None:
        image = Image.new("LA", (2, 1))
        image.putdata([(7, 255), (7, 0)])
        assert pixels_of(save(tmp_path / "a.png", image)).tolist() == [[[7, 7, 7], list(WHITE)]]

    def test_a_transparent_colour_of_an_rgb_png_shows_white(self, tmp_path: Path) -> None:
        image = Image.new("RGB", (2, 1))
        image.putdata([RED, BLUE])
        path = save(tmp_path / "a.png", image, transparency=RED)
        assert pixels_of(path).tolist() == [[list(WHITE), list(BLUE)]]

    @pytest.mark.parametrize("ending", ["png", "tiff"])
    def test_sixteen_bits_are_scaled_and_not_clipped(self, tmp_path: Path, ending: str) -> None:
        deep = np.array([[0, 257, 32896, 65535]], np.uint16)
        path = save(tmp_path / f"a.{ending}", Image.fromarray(deep))
        assert pixels_of(path)[..., 0].tolist() == [[0, 1, 128, 255]]
        assert "16-bit or float to 8-bit" in steps_of(path)

    @pytest.mark.parametrize(
        ("values", "expected"),
        [([0.0, 0.5, 1.0], [0, 128, 255]), ([0.0, 128.0, 255.0], [0, 128, 255])],
        ids=["0 to 1", "0 to 255"],
    )
    def test_float_images_are_scaled_by_their_range(
        self, tmp_path: Path, values: list[float], expected: list[int]
    ) -> None:
        path = save(tmp_path / "a.tiff", Image.fromarray(np.array([values], np.float32)))
        assert pixels_of(path)[0, :, 0].tolist() == expected

    @pytest.mark.parametrize("bad", [-1.0, 300.0, np.nan, np.inf])
    def test_float_images_beyond_any_range_are_refused(self, tmp_path: Path, bad: float) -> None:
        path = save(tmp_path / "a.tiff", Image.fromarray(np.array([[2.0, bad]], np.float32)))
        with pytest.raises(ImageProblemError, match=r"a\.tiff: (pixel values beyond|negative or non-finite)"):
            pixels_of(path)

    def test_cmyk_becomes_rgb(self, tmp_path: Path) -> None:
        path = save(tmp_path / "a.jpg", Image.new("CMYK", (8, 8), (0, 255, 255, 0)), quality=100)
        assert np.abs(pixels_of(path)[0, 0].astype(int) - RED).max() <= 3
        assert steps_of(path) == ("CMYK to RGB",)

    @pytest.mark.parametrize("orientation", range(1, 9))
    def test_a_photograph_is_turned_upright(self, tmp_path: Path, orientation: int) -> None:
        upright = gradient()
        stored = {
            1: upright,
            2: upright[:, ::-1],
            3: upright[::-1, ::-1],
            4: upright[::-1],
            5: upright.transpose(1, 0, 2),
            6: np.rot90(upright, 1),
            7: np.rot90(upright, 2).transpose(1, 0, 2),
            8: np.rot90(upright, -1),
        }[orientation]
        exif = Image.Exif()
        exif[0x0112] = orientation
        path = save(tmp_path / "a.png", np.ascontiguousarray(stored), exif=exif)
        np.testing.assert_array_equal(pixels_of(path), upright)
        assert measure(Blob(path)) == (16, 24)
        assert steps_of(path) == (() if orientation == 1 else ("turned upright (EXIF)",))

    def test_the_first_of_several_frames_counts(self, tmp_path: Path) -> None:
        frames = [Image.new("RGB", (4, 4), colour) for colour in (RED, BLUE)]
        path = save(tmp_path / "a.gif", frames[0], save_all=True, append_images=frames[1:])
        assert pixels_of(path)[0, 0].tolist() == list(RED)
        assert "first of several frames taken" in steps_of(path)

    def test_the_content_counts_and_not_the_ending(self, tmp_path: Path) -> None:
        save(tmp_path / "a.png", gradient(), format="BMP")
        np.testing.assert_array_equal(pixels_of(tmp_path / "a.png"), gradient())

    @pytest.mark.parametrize("ending", ["jpg", "png", "bmp", "gif", "webp", "tiff"])
    @pytest.mark.parametrize("kept", [0.5, 0.9])
    def test_a_truncated_image_is_never_half_read(self, tmp_path: Path, ending: str, kept: float) -> None:
        noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
        path = save(tmp_path / f"a.{ending}", noise)
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * kept)])
        with pytest.raises(BadImageError, match=r"truncated|damaged|not an image"):
            pixels_of(path)

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (b"", "empty file"),
            (b"hello", "not an image"),
            (b"\xff\xd8\xff\xe0" + b"\0" * 50, "truncated|damaged|not an"),
        ],
    )
    def test_what_is_no_image_has_a_reason(self, tmp_path: Path, content: bytes, reason: str) -> None:
        (tmp_path / "a.jpg").write_bytes(content)
        with pytest.raises(ImageProblemError, match=reason):
            pixels_of(tmp_path / "a.jpg")

    def test_a_file_that_is_gone_has_a_reason(self, tmp_path: Path) -> None:
        with pytest.raises(ImageProblemError, match="does not exist"):
            pixels_of(tmp_path / "a.jpg")

    def test_a_picture_of_absurd_size_is_refused_and_not_allocated(self, tmp_path: Path) -> None:
        header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
        chunks = (b"IHDR" + header, b"IDAT" + zlib.compress(b"\0" * 1000), b"IEND")
        framed = (struct.pack(">I", len(c) - 4) + c + struct.pack(">I", zlib.crc32(c)) for c in chunks)
        (tmp_path / "bomb.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(framed))
        with pytest.raises(ImageProblemError, match="too large"):
            pixels_of(tmp_path / "bomb.png")

    def test_random_damage_raises_only_image_problems(self, tmp_path: Path) -> None:
        generator = np.random.default_rng(0)
        buffer = io.BytesIO()
        Image.fromarray(gradient(32, 32)).save(buffer, "PNG")
        for trial in range(150):
            content = bytearray(buffer.getvalue())
            for position in generator.integers(8, len(content), 4):
                content[position] = generator.integers(256)
            (tmp_path / f"{trial}.png").write_bytes(content)
            try:
                pixels = pixels_of(tmp_path / f"{trial}.png")
            except ImageProblemError:
                continue
            assert pixels.dtype == np.uint8


class TestFit:
    def test_the_right_size_is_left_alone_even_with_a_margin(self) -> None:
        image = Image.fromarray(gradient(224, 224))
        assert Fit(224, 224, shorter=256).apply(image) is image

    @pytest.mark.parametrize("size", [(300, 500), (500, 300), (100, 100), (224, 1000), (225, 224)])
    def test_the_shorter_side_is_scaled_and_the_centre_cropped_as_torchvision_does(self, size: tuple[int, int]) -> None:
        transforms = pytest.importorskip("torchvision.transforms")
        image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8))
        expected = transforms.CenterCrop(224)(transforms.Resize(256)(image))
        np.testing.assert_array_equal(np.asarray(Fit(224, 224, shorter=256).apply(image)), np.asarray(expected))

    @pytest.mark.parametrize("how", ["crop", "stretch"])
    @pytest.mark.parametrize("size", [(1, 1), (7, 50), (50, 7), (200, 199)])
    def test_any_size_becomes_any_size(self, size: tuple[int, int], how: Any) -> None:
        image = Image.fromarray(np.zeros((*size, 3), np.uint8))
        for height, width in ((1, 1), (9, 9), (5, 31), (31, 5)):
            fitted = Fit(height, width, how=how).apply(image)
            assert (fitted.height, fitted.width) == (height, width)

    def test_crop_keeps_the_centre_and_stretch_keeps_all(self) -> None:
        stripes = np.zeros((30, 90, 3), np.uint8)
        stripes[:, :30], stripes[:, 30:60], stripes[:, 60:] = RED, GREEN, BLUE
        crop = np.asarray(Fit(30, 30).apply(Image.fromarray(stripes)))
        assert (crop == GREEN).all()
        stretched = np.asarray(Fit(30, 30, how="stretch").apply(Image.fromarray(stripes)))
        assert [stretched[15, place].tolist() for place in (2, 15, 27)] == [list(RED), list(GREEN), list(BLUE)]

    @pytest.mark.parametrize("wrong", [{"height": 0, "width": 5}, {"height": 224, "width": 224, "shorter": 200}])
    def test_an_impossible_size_is_refused(self, wrong: dict[str, int]) -> None:
        with pytest.raises(OptionError):
            Fit(**wrong)


class TestFolder:
    def test_a_mixed_folder_is_read_and_everything_else_reported(self, tmp_path: Path) -> None:
        for number in (1, 2, 10):
            save(tmp_path / f"frame{number}.png", np.full((8, 8, 3), number, np.uint8))
        save(tmp_path / "grey.png", np.full((8, 8), 50, np.uint8))
        save(tmp_path / "large.png", np.full((20, 30, 3), 60, np.uint8))
        (tmp_path / "notes.txt").write_text("hello")
        (tmp_path / "empty.jpg").write_bytes(b"")
        (tmp_path / ".DS_Store").write_bytes(b"hidden")
        (tmp_path / "nothing").mkdir()
        whole = save(tmp_path / "cut.png", np.random.default_rng(0).integers(0, 256, (8, 8, 3), np.uint8)).read_bytes()
        (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])

        dataset = read_images(tmp_path)
        assert dataset.size == (8, 8), "the commonest size"
        pixels, readable = read_pixels(dataset.images, np.arange(len(dataset)))
        assert pixels[:, 0, 0, 0].tolist() == [1, 2, 10, 50, 60], "in natural order"
        assert readable.tolist() == [False, True, True, True, True, True]
        report = dataset.report
        assert report.found == 8
        assert report.skipped == (
            ("empty file", 1, ("empty.jpg",)),
            ("not an image", 1, ("notes.txt",)),
            ("truncated", 1, ("cut.png",)),
        )
        assert report.lost == 3
        assert dict(report.converted) == {"grey to RGB": 1, "fitted to 8x8": 1}
        assert [reason for reason, _, _ in report.folders] == ["folder: empty"]
        assert str(report).splitlines()[0] == "5 of 8 read"

    def test_reading_twice_does_not_count_twice(self, tmp_path: Path) -> None:
        save(tmp_path / "grey.png", np.full((8, 8), 50, np.uint8))
        dataset = read_images(tmp_path)
        for _ in range(3):
            read_pixels(dataset.images, np.array([0, 0]))
        assert dataset.report.converted == (("grey to RGB", 1),)

    def test_a_bad_image_raises_only_where_no_one_could_be_told(self, tmp_path: Path) -> None:
        save(tmp_path / "a.png", gradient(8, 8))
        whole = (tmp_path / "a.png").read_bytes()
        (tmp_path / "b.png").write_bytes(whole[:-30])
        dataset = read_images(tmp_path)
        assert dataset.images[0].shape == (8, 8, 3)
        with pytest.raises(BadImageError, match=r"1 of 2 images cannot be read.*b\.png"):
            dataset.images[:]
        loaded = dataset.in_memory()
        assert len(loaded) == 1
        np.testing.assert_array_equal(loaded.images[0], gradient(8, 8))

    def test_the_wanted_size_is_kept_for_all(self, tmp_path: Path) -> None:
        save(tmp_path / "a.png", gradient(8, 8))
        save(tmp_path / "b.png", gradient(30, 20))
        assert read_images(tmp_path, size=16).images[:].shape == (2, 16, 16, 3)
        assert read_images(tmp_path, size=(4, 6)).images[:].shape == (2, 4, 6, 3)

    def test_of_equally_common_sizes_the_larger_is_taken(self, tmp_path: Path) -> None:
        save(tmp_path / "a.png", gradient(8, 8))
        save(tmp_path / "b.png", gradient(30, 20))
        assert read_images(tmp_path).size == (30, 20)

    def test_folders_give_classes(self, tmp_path: Path) -> None:
        for name in ("dog", "cat", "cat/more"):
            save(tmp_path / name / "1.png", gradient(8, 8))
        (tmp_path / "bird").mkdir()
        dataset = read_images(tmp_path, labels="folders")
        assert dataset.classes == ("cat", "dog", "more")
        assert [dataset.classes[label] for label in dataset.labels] == ["cat", "more", "dog"]
        assert read_images(tmp_path).labels.tolist() == [UNLABELLED] * 3

    def test_given_classes_fix_the_labels_and_leave_others_out(self, tmp_path: Path) -> None:
        for name in ("dog", "cat", "fish"):
            save(tmp_path / name / "1.png", gradient(8, 8))
        dataset = read_images(tmp_path, labels="folders", classes=("dog", "horse", "cat"))
        assert dataset.labels.tolist() == [2, 0]
        assert dataset.report.skipped == (("folder is not one of the classes", 1, ("1.png",)),)
        with pytest.raises(DataError, match="named after one of the 1 given classes"):
            read_images(tmp_path, labels="folders", classes=("horse",))

    def test_files_patterns_and_folders_can_be_combined_without_doubles(self, tmp_path: Path) -> None:
        for name in ("b/2.png", "b/10.png", "c.png"):
            save(tmp_path / name, gradient(8, 8))
        images = read_images(tmp_path / "c.png", str(tmp_path / "b/*.png"), tmp_path / "b", str(tmp_path / "*.jpg"))
        assert isinstance(images.images, FileImages)
        assert [Path(name).name for name in images.images.names] == ["c.png", "2.png", "10.png"]
        assert [reason for reason, _, _ in images.report.folders] == ["no file matches the pattern"]

    def test_a_pattern_character_in_a_real_name_is_taken_literally(self, tmp_path: Path) -> None:
        save(tmp_path / "[a].png", gradient(8, 8))
        assert len(read_images(tmp_path / "[a].png")) == 1

    def test_an_empty_folder_is_one_clear_error(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"^no image in .*0 of 0 read; skipped 1: folder: empty"):
            read_images(tmp_path)

    def test_a_folder_without_images_says_what_was_there(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("x")
        (tmp_path / "b.jpg").write_bytes(b"")
        with pytest.raises(DataError, match=r"empty file \(b\.jpg\); skipped 1: not an image \(a\.txt\)"):
            read_images(tmp_path)

    def test_a_path_that_does_not_exist_is_one_clear_error(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="file does not exist"):
            read_images(tmp_path / "nowhere")

    def test_a_folder_that_may_not_be_opened_is_reported(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        save(tmp_path / "a.png", gradient(8, 8))
        save(tmp_path / "locked/b.png", gradient(8, 8))
        iterdir = Path.iterdir

        def refuse(self: Path) -> Any:
            if self.name == "locked":
                raise PermissionError(13, "Permission denied")
            return iterdir(self)

        # Root may open everything, so the refusal is played.
        monkeypatch.setattr(Path, "iterdir", refuse)
        dataset = read_images(tmp_path)
        assert len(dataset) == 1
        assert dataset.report.folders == (("folder: no permission to open", 1, ("locked",)),)

    def test_a_file_that_may_not_be_read_is_reported(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        save(tmp_path / "a.png", gradient(8, 8))
        save(tmp_path / "b.png", gradient(8, 8))
        open_ = Image.open

        def refuse(path: Any, *args: Any) -> Any:
            if "b.png" in str(path):
                raise PermissionError(13, "Permission denied")
            return open_(path, *args)

        monkeypatch.setattr(Image, "open", refuse)
        dataset = read_images(tmp_path)
        assert dataset.report.skipped == (("no permission to read", 1, ("b.png",)),)

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
    def test_a_named_pipe_does_not_block(self, tmp_path: Path) -> None:
        save(tmp_path / "a.png", gradient(8, 8))
        os.mkfifo(tmp_path / "pipe.png")
        assert read_images(tmp_path).report.skipped == (("not a regular file", 1, ("pipe.png",)),)

    def test_a_link_that_leads_back_up_ends(self, tmp_path: Path) -> None:
        save(tmp_path / "a/b.png", gradient(8, 8))
        (tmp_path / "a/loop").symlink_to(tmp_path, target_is_directory=True)
        assert len(read_images(tmp_path)) == 1

    def test_a_file_that_vanishes_after_the_scan_is_skipped(self, tmp_path: Path) -> None:
        save(tmp_path / "a.png", gradient(8, 8))
        save(tmp_path / "b.png", gradient(8, 8))
        dataset = read_images(tmp_path)
        (tmp_path / "a.png").unlink()
        pixels, readable = read_pixels(dataset.images, np.array([0, 1]))
        assert (len(pixels), readable.tolist()) == (1, [False, True])
        assert dataset.report.skipped == (("file does not exist", 1, ("a.png",)),)

    def test_the_report_goes_into_json(self, tmp_path: Path) -> None:
        save(tmp_path / "a.png", gradient(8, 8))
        (tmp_path / "b.txt").write_text("x")
        assert read_images(tmp_path).report.as_dict() == {
            "found": 2,
            "skipped": [{"reason": "not an image", "count": 1, "examples": ["b.txt"]}],
            "converted": [],
            "folders": [],
        }

    def test_the_fingerprint_follows_the_content(self, tmp_path: Path) -> None:
        save(tmp_path / "a.png", gradient(8, 8))
        before = read_images(tmp_path).fingerprint
        assert read_images(tmp_path).fingerprint == before
        save(tmp_path / "a.png", gradient(8, 8)[::-1].copy())
        assert read_images(tmp_path).fingerprint != before
