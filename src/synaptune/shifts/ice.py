"""The textures of frost: the published photographs where they are found, else ice that is grown here.

Five photographs come with the published generators (a sixth is never chosen there, nor here). They are looked for in
`SYNAPTUNE_DATA/frost`, in the shared data folder, and among the files of an installed `imagecorruptions`, which is
located but not imported. Without them, textures are grown from needles and fractal noise, and get the mean and the
spread of the photographs, channel by channel. `frost_source` names what is in use; it is part of every recipe, so
data made with different textures are never mixed up.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from synaptune.errors import DataError
from synaptune.shifts.fixed_point import to_bytes
from synaptune.shifts.plasma import plasma
from synaptune.shifts.randomness import ImageStreams

__all__ = ["Texture", "frost_folder", "frost_source", "ice_textures"]

_GROWN = "procedural-1"
_SIDE, _NEEDLES = 512, 900
_FILES = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")
# sha256 of the five published files, one after the other.
_PUBLISHED = "c146cff9eab2397f71c47ee7c727e2f8a36cf7445b8daf1dad63a0ce34140861"
# Mean and standard deviation of red, green and blue of the five photographs.
_BRIGHTNESS = (
    ((78, 149, 166), (27, 16, 15)),
    ((201, 205, 214), (21, 22, 23)),
    ((201, 205, 214), (21, 22, 23)),
    ((138, 153, 165), (28, 28, 30)),
    ((112, 123, 135), (44, 43, 42)),
)


def frost_source() -> str:
    """Name the textures that frost uses now: `published`, `files-...` for other files, or `procedural-1`."""
    folder = frost_folder()
    return _GROWN if folder is None else _name_of(folder)


def frost_folder() -> Path | None:
    """Return the first folder that holds all five photographs, or None."""
    for folder in _candidates():
        if all((folder / name).is_file() for name in _FILES):
            return folder
    return None


@dataclass(frozen=True)
class Texture:
    """A photograph of ice, enlarged only where somebody looks: photographs of many megapixels need huge textures.

    Attributes:
        pixels: uint8, (h, w, 3).
        scale: by how much the texture is larger than its pixels; at least 1.
    """

    pixels: NDArray[np.uint8]
    scale: float = 1.0

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the texture."""
        return _scaled(self.pixels, self.scale)

    def window(self, top: int, left: int, height: int, width: int) -> NDArray[np.uint8]:
        """Return a part of the texture."""
        rows, columns = slice(top, top + height), slice(left, left + width)
        return self.pixels[rows, columns] if self.scale == 1 else _resized(self.pixels, self.scale, rows, columns)


def ice_textures(scale: float, height: int, width: int) -> tuple[Texture, ...]:
    """Return the textures, resized by `scale`, or by more where an image of this size would not fit."""
    return _fitting(frost_folder(), scale, height, width)


@functools.lru_cache(maxsize=8)
def _fitting(folder: Path | None, scale: float, height: int, width: int) -> tuple[Texture, ...]:
    fitting = []
    for pixels in _grown() if folder is None else _photographs(folder):
        rows, columns = _scaled(pixels, scale)
        # A texture that is too small gets a tenth more than it needs, to have windows to choose from.
        enough = scale if rows >= height and columns >= width else _tenth_more(pixels, height, width)
        fitting.append(Texture(pixels, enough) if enough >= 1 else Texture(_resized(pixels, enough)))
    return tuple(fitting)


def _tenth_more(pixels: NDArray[np.uint8], height: int, width: int) -> float:
    return float(1.1 * max(height / pixels.shape[0], width / pixels.shape[1]))


def _scaled(pixels: NDArray[np.uint8], scale: float) -> tuple[int, int]:
    return max(1, round(pixels.shape[0] * scale)), max(1, round(pixels.shape[1] * scale))


def _candidates() -> Iterator[Path]:
    """Give the folders where data sets are looked for too, in the same order, and the other package's."""
    yield Path(os.environ.get("SYNAPTUNE_DATA") or "~/.cache/synaptune").expanduser() / "frost"
    shared = os.environ.get("SYNAPTUNE_SHARED")
    checkout = Path(__file__).resolve().parents[3]
    if shared:
        yield from (Path(shared).expanduser() / inside for inside in ("data/frost", "frost"))
    elif (checkout / "pyproject.toml").is_file():
        yield checkout.parent / "shared" / "data" / "frost"
    package = importlib.util.find_spec("imagecorruptions")
    for location in (package.submodule_search_locations or ()) if package else ():
        yield Path(location) / "frost"


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """Say of a photograph that cannot be read what to do; Pillow raises almost anything on damaged files."""
    try:
        yield
    except Exception as error:
        raise DataError(
            f"the photograph of ice {file} cannot be read ({error}); put the published file there, or take the folder "
            f"away to have ice grown instead"
        ) from error


@functools.lru_cache(maxsize=8)
def _name_of(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in _FILES:
        with _readable(folder / name):
            digest.update((folder / name).read_bytes())
    return "published" if digest.hexdigest() == _PUBLISHED else f"files-{digest.hexdigest()[:12]}"


@functools.lru_cache(maxsize=2)
def _photographs(folder: Path) -> tuple[NDArray[np.uint8], ...]:
    photographs = []
    for name in _FILES:
        with _readable(folder / name), Image.open(folder / name) as photograph:
            # Two have an alpha channel, which the published code drops as well.
            photographs.append(np.asarray(photograph.convert("RGB")))
    return tuple(photographs)


def _resized(
    pixels: NDArray[np.uint8], scale: float, rows: slice = slice(None), columns: slice = slice(None)
) -> NDArray[np.uint8]:
    """Return a part of the enlarged or shrunk picture.

    Resized between pixel centres without smoothing first, as OpenCV does: shrinking keeps the ice grainy.
    """
    tall, wide = _scaled(pixels, scale)
    top, down = _between(np.arange(tall)[rows], scale, pixels.shape[0])
    left, right = _between(np.arange(wide)[columns], scale, pixels.shape[1])
    below, beside = np.minimum(top + 1, pixels.shape[0] - 1), np.minimum(left + 1, pixels.shape[1] - 1)
    upper, lower = pixels[top].astype(np.float32), pixels[below].astype(np.float32)
    lines = upper + (lower - upper) * down[:, None, None]
    return to_bytes(lines[:, left] + (lines[:, beside] - lines[:, left]) * right[:, None] + np.float32(0.5))


def _between(targets: NDArray[np.int64], scale: float, size: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return for each target position the source pixel before it, and how far beyond that it lies."""
    positions = np.clip((targets + 0.5) / scale - 0.5, 0, size - 1)
    before = np.floor(positions).astype(np.int64)
    return before, (positions - before).astype(np.float32)


@functools.cache
def _grown() -> tuple[NDArray[np.uint8], ...]:
    """Grow one texture for each photograph: feathers of ice, lit from the side, over cloudy glass."""
    streams = ImageStreams(np.arange(len(_BRIGHTNESS)), seed=0, name="ice", severity=0)
    clouds = plasma(streams, _SIDE, 1.7)
    textures = []
    for ice, cloud, (means, spreads) in zip(_feathers(streams), clouds, _BRIGHTNESS, strict=True):
        lit = ice - 0.7 * np.roll(ice, (1, 2), axis=(0, 1))
        relief = lit / lit.std() + 0.8 * cloud / cloud.std()
        relief = (relief - relief.mean()) / relief.std()
        textures.append(to_bytes(relief[..., None] * np.array(spreads, float) + np.array(means, float) + 0.5))
    return tuple(textures)


def _feathers(streams: ImageStreams) -> Iterator[NDArray[np.float64]]:
    """Draw needles with barbs at 60 degrees on both sides, the angle at which ice branches."""
    along, number = np.arange(0, 1, 1 / 48), np.arange(1, 9)
    for draw in streams.uniform(4 * _NEEDLES, 0, 1).reshape(-1, 4, _NEEDLES, 1):
        top, left, turn, length = draw
        angle, reach = 2 * np.pi * turn, 12 + 70 * length**3
        canvas = np.zeros((_SIDE, _SIDE))
        _draw(canvas, top * _SIDE, left * _SIDE, angle, reach * along)
        for side in (-1, 1):
            root = number / 9
            barb = angle + side * np.pi / 3
            barb_top = top * _SIDE + np.sin(angle) * reach * root  # (needles, barbs)
            barb_left = left * _SIDE + np.cos(angle) * reach * root
            steps = (0.45 * reach * (1 - root))[..., None] * along[::2]
            _draw(canvas, barb_top[..., None], barb_left[..., None], barb[..., None], steps)
        yield np.sqrt(canvas)


def _draw(
    canvas: NDArray[np.float64],
    top: NDArray[np.float64],
    left: NDArray[np.float64],
    angle: NDArray[np.float64],
    steps: NDArray[np.float64],
) -> None:
    """Add points at `steps` along lines to a canvas whose borders wrap around."""
    rows = np.floor(top + np.sin(angle) * steps).astype(np.int64) % _SIDE
    columns = np.floor(left + np.cos(angle) * steps).astype(np.int64) % _SIDE
    canvas += np.bincount((rows * _SIDE + columns).ravel(), minlength=_SIDE * _SIDE).reshape(canvas.shape)
