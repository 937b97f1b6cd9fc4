"""One image file to upright 8-bit RGB, whatever it was stored as; or the reason why not.

What a viewer would show is what a model gets: turned as EXIF says, transparency over white, 16 bits scaled to 8 (not
clipped), CMYK and palettes converted, of several frames the first. Nothing is guessed about half a picture: a
truncated file is an error, though Pillow could be told to fill the rest with grey.
"""

from __future__ import annotations

import io
import stat
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from synaptune.errors import BadImageError, OptionError

if TYPE_CHECKING:
    from synaptune.data.images import Pixels

__all__ = ["Blob", "Decoded", "Fit", "ImageProblemError", "decode", "measure"]

_ORIENTATION = 0x0112
_UPRIGHT = 1
# What turns a stored image upright, by orientation; the last four exchange height and width.
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_SIDEWAYS = frozenset({5, 6, 7, 8})
# Python keeps one list of warning filters for all threads.
_warning_filters = threading.Lock()
_DEEP_GREY = frozenset({"I;16", "I;16B", "I;16L", "I;16N"})
_WITH_ALPHA = frozenset({"RGBA", "RGBa", "LA", "La", "PA"})
_GREY = frozenset({"1", "L"})


class ImageProblemError(BadImageError):
    """An image that cannot be used; `reason` is short and the same for all files with that trouble."""

    def __init__(self, name: str, reason: str):
        self.name, self.reason = name, reason
        super().__init__(f"{name}: {reason}")


@dataclass(frozen=True)
class Blob:
    """Where the bytes of one image lie: a file, or a stretch of one (a member of an uncompressed tar).

    Attributes:
        path: the file.
        offset: first byte.
        length: number of bytes; None means to the end.
        name: what messages and prediction lists call it; the path if empty.
    """

    path: Path
    offset: int = 0
    length: int | None = None
    name: str = ""

    def __str__(self) -> str:
        return self.name or str(self.path)

    def read(self) -> bytes:
        """Give the stored bytes."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            return file.read(-1 if self.length is None else self.length)


@dataclass(frozen=True)
class Fit:
    """How an image of another size becomes one of this size.

    Attributes:
        height: wanted height.
        width: wanted width.
        shorter: length that the shorter side is scaled to before the centre crop; 256 with 224x224 is the usual
            evaluation of ImageNet models. None scales just enough to cover.
        how: "crop" keeps proportions, "stretch" keeps everything.
    """

    height: int
    width: int
    shorter: int | None = None
    how: Literal["crop", "stretch"] = "crop"

    def __post_init__(self) -> None:
        if min(self.height, self.width) < 1:
            raise OptionError(f"an image size must be positive, not {self.height}x{self.width}")
        if self.shorter is not None and self.shorter < min(self.height, self.width):
            raise OptionError(
                f"the shorter side must be scaled to at least {min(self.height, self.width)} before a crop to "
                f"{self.height}x{self.width}, not to {self.shorter}"
            )

    def apply(self, image: Image.Image) -> Image.Image:
        """Return the image in the wanted size; one that has it already is left alone, also by `shorter`."""
        if (image.height, image.width) == (self.height, self.width):
            return image
        if self.how == "stretch":
            return image.resize((self.width, self.height), Image.Resampling.BILINEAR)
        scaled = image.resize(self._scaled_size(image), Image.Resampling.BILINEAR)
        # Python rounds halves to even here, as torchvision's CenterCrop does.
        left, top = round((scaled.width - self.width) / 2), round((scaled.height - self.height) / 2)
        return scaled.crop((left, top, left + self.width, top + self.height))

    def _scaled_size(self, image: Image.Image) -> tuple[int, int]:
        margin = 1.0 if self.shorter is None else self.shorter / min(self.height, self.width)
        wanted = (margin * self.width, margin * self.height)
        if wanted[0] * image.height >= wanted[1] * image.width:
            return round(wanted[0]), int(round(wanted[0]) * image.height / image.width)
        return int(round(wanted[1]) * image.width / image.height), round(wanted[1])


class Decoded(NamedTuple):
    """An image as an array, and what had to be done to it.

    Attributes:
        pixels: uint8, (height, width, 3).
        steps: such as "grey to RGB" or "turned upright (EXIF)".
    """

    pixels: Pixels
    steps: tuple[str, ...]


def decode(blob: Blob, fit: Fit | None = None) -> Decoded:
    """Read one image.

    Args:
        blob: where its bytes are.
        fit: the size that it must have; None keeps its own.

    Raises:
        ImageProblemError: it is empty, no image, truncated, damaged, too large or not accessible.
    """
    try:
        with _open(blob) as image:
            image.load()
            upright, turned = _turn_upright(image)
            rgb, converted = _to_rgb(upright)
            frames = getattr(image, "n_frames", 1)
        fitted = fit.apply(rgb) if fit else rgb
    except ImageProblemError as problem:
        raise ImageProblemError(str(blob), problem.reason) from problem
    except Exception as error:
        # Pillow's decoders raise almost anything on damaged files: OSError, SyntaxError, struct.error, IndexError.
        raise ImageProblemError(str(blob), _reason(error)) from error
    steps = [*turned, *converted]
    if frames > 1:
        steps.append("first of several frames taken")
    if fitted is not rgb:
        steps.append(f"fitted to {fitted.height}x{fitted.width}")
    return Decoded(np.array(fitted), tuple(steps))


def measure(blob: Blob) -> tuple[int, int]:
    """Height and width of an image as it will be decoded, from its header alone."""
    try:
        with _open(blob) as image:
            # For a PNG without that block at its head, getexif would decode everything to look for one at its end.
            is_known = image.format != "PNG" or "exif" in image.info
            sideways = is_known and _orientation(image) in _SIDEWAYS
            return (image.width, image.height) if sideways else (image.height, image.width)
    except ImageProblemError as problem:
        raise ImageProblemError(str(blob), problem.reason) from problem
    except Exception as error:
        raise ImageProblemError(str(blob), _reason(error)) from error


def _open(blob: Blob) -> Image.Image:
    if blob.length is not None:
        content = io.BytesIO(blob.read())
        with _silent_exif():
            return Image.open(content)
    status = blob.path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ImageProblemError(str(blob), "not a regular file")  # reading from a named pipe would wait for ever
    if status.st_size == 0:
        raise ImageProblemError(str(blob), "empty file")
    with _silent_exif():
        return Image.open(blob.path)


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "file does not exist"
    if isinstance(error, PermissionError):
        return "no permission to read"
    if isinstance(error, UnidentifiedImageError):
        return "not an image"
    if isinstance(error, Image.DecompressionBombError | MemoryError):
        return "too large"
    if isinstance(error, EOFError) or "truncated" in str(error).lower():
        return "truncated"
    return "damaged"


def _turn_upright(image: Image.Image) -> tuple[Image.Image, list[str]]:
    turn = _TURNS.get(_orientation(image))
    return (image, []) if turn is None else (image.transpose(turn), ["turned upright (EXIF)"])


def _orientation(image: Image.Image) -> int:
    """Read the orientation; damaged EXIF data says nothing, and is no reason to lose a picture that can be seen."""
    try:
        with _silent_exif():
            value = image.getexif().get(_ORIENTATION, _UPRIGHT)
    except Exception:  # noqa: BLE001 - as with decoders, Pillow raises almost anything here
        return _UPRIGHT
    return value if isinstance(value, int) else _UPRIGHT


@contextmanager
def _silent_exif() -> Iterator[None]:
    """Keep Pillow from warning of damaged EXIF data, once per file, while it reads a header."""
    with _warning_filters, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Corrupt EXIF data")
        yield


def _to_rgb(image: Image.Image) -> tuple[Image.Image, list[str]]:
    mode = image.mode
    if mode == "RGB" and "transparency" not in image.info:
        return image, []
    if mode in _DEEP_GREY or mode in ("I", "F"):
        return _deep_to_8_bit(image).convert("RGB"), ["16-bit or float to 8-bit", "grey to RGB"]
    if mode in _WITH_ALPHA or "transparency" in image.info:
        return _over_white(image), ["transparency laid over white"]
    if mode in _GREY:
        return image.convert("RGB"), ["grey to RGB"]
    if mode == "P":
        return image.convert("RGB"), ["palette to RGB"]
    return image.convert("RGB"), [f"{mode} to RGB"]


def _over_white(image: Image.Image) -> Image.Image:
    layer = image.convert("RGBA")
    white = Image.new("RGBA", layer.size, (255, 255, 255, 255))
    return Image.alpha_composite(white, layer).convert("RGB")


def _deep_to_8_bit(image: Image.Image) -> Image.Image:
    values: npt.NDArray[np.float64] = np.asarray(image).astype(np.float64)
    low, high = float(values.min()), float(values.max())
    if not (np.isfinite(values).all() and low >= 0):
        raise ImageProblemError("", "negative or non-finite pixel values")
    # 65535 / 255 = 257, so that white stays white. Integer images that Pillow opens as "I" come from 16-bit PNGs.
    if image.mode in _DEEP_GREY or image.mode == "I":
        full = 65535.0 if image.mode in _DEEP_GREY or image.format == "PNG" or high > 255 else 255.0
    else:
        full = 1.0 if high <= 1 else 255.0
    if high > full:
        raise ImageProblemError("", "pixel values beyond 16 bits")
    return Image.fromarray(np.rint(values * (255.0 / full)).astype(np.uint8))
