"""Everything that can be named as input is found, in natural order, and a wrong name is told at once."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from synaptune.errors import BadImageError, DataError, OptionError
from synaptune.predicting import find_items
from tests.support.pictures import make_pictures


def names(*sources: str | Path, stdin: str | None = None) -> list[str]:
    found = find_items([str(source) for source in sources], stdin=None if stdin is None else io.StringIO(stdin))
    return [item.name for item in found]


def test_a_folder_is_searched_through_in_natural_order(tmp_path: Path) -> None:
    make_pictures(tmp_path / "b", 12)
    make_pictures(tmp_path / "a" / "deep", 1)
    (tmp_path / ".hidden.png").write_bytes(b"")
    found = names(tmp_path)
    assert found[0] == str(tmp_path / "a" / "deep" / "picture0.png")
    assert found[1:] == [str(tmp_path / "b" / f"picture{n}.png") for n in range(12)]
    assert find_items([str(tmp_path)]).total == 13


def test_links_in_circles_end(tmp_path: Path) -> None:
    make_pictures(tmp_path / "a", 1)
    (tmp_path / "a" / "up").symlink_to(tmp_path, target_is_directory=True)
    assert len(names(tmp_path)) == 1


def test_patterns_may_be_recursive(tmp_path: Path) -> None:
    make_pictures(tmp_path / "x" / "y", 2)
    make_pictures(tmp_path, 1, suffix=".bmp")
    assert len(names(tmp_path / "**" / "*.png")) == 2
    assert len(names(tmp_path / "**" / "*")) == 3


def test_files_keep_the_order_in_which_they_are_named(tmp_path: Path) -> None:
    first, second = make_pictures(tmp_path, 2)
    assert names(second, first) == [str(second), str(first)]


def test_a_list_on_stdin_may_name_files_and_folders(tmp_path: Path) -> None:
    first, second = make_pictures(tmp_path / "in", 2)
    assert names("-", stdin=f"{second}\n\n{tmp_path / 'in'}\r\n") == [str(second), str(first), str(second)]


def test_a_name_on_stdin_that_leads_nowhere_is_left_to_the_report(tmp_path: Path) -> None:
    (item,) = find_items(["-"], stdin=io.StringIO(f"{tmp_path / 'gone.png'}\n"))
    with pytest.raises(BadImageError, match="does not exist"):
        item.read()


def test_stdin_is_read_line_by_line_as_images_are_asked_for(tmp_path: Path) -> None:
    (path,) = make_pictures(tmp_path, 1)
    read = []

    class Lines(io.StringIO):
        def __iter__(self):  # type: ignore[no-untyped-def]
            for line in [f"{path}\n"] * 3:
                read.append(line)
                yield line

    found = find_items(["-"], stdin=Lines())
    assert found.total is None
    next(iter(found))
    assert len(read) == 1


@pytest.mark.parametrize("source", ["gone", "gone/*.png", "gone.mp4"])
def test_a_name_that_leads_nowhere_is_an_error(source: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no image in"):
        find_items([str(tmp_path / source)])


def test_no_name_at_all_is_an_error() -> None:
    with pytest.raises(DataError, match="no images were named"):
        find_items([])
    with pytest.raises(DataError, match="stdin"):
        find_items(["-"])


def test_shuffling_is_seeded_and_for_files_only(tmp_path: Path) -> None:
    make_pictures(tmp_path / "a", 10)
    make_pictures(tmp_path / "b", 10)
    where = [str(tmp_path)]
    orders = [[item.name for item in find_items(where, shuffle=seed)] for seed in (1, 1, 2)]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert sorted(orders[0]) == sorted(names(tmp_path))
    assert (find_items(where).folders, find_items(where, shuffle=0).folders) == (2, 1)
    with pytest.raises(OptionError, match="shuffled"):
        find_items(["-"], stdin=io.StringIO(), shuffle=0)


def test_a_video_without_its_library_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    video = tmp_path / "road.mp4"
    video.write_bytes(b"no video")
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(OptionError, match="pip install av"):
        next(iter(find_items([str(video)])))


def test_frames_of_a_video_are_named_by_number(tmp_path: Path) -> None:
    av = pytest.importorskip("av", reason="videos need PyAV")
    import numpy as np

    path = tmp_path / "grey.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 32, 16, "yuv420p"
        for level in range(0, 250, 50):
            frame = av.VideoFrame.from_ndarray(np.full((16, 32, 3), level, np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    items = list(find_items([str(path)], every=2))
    assert [item.name for item in items] == [f"{path}#{n}" for n in (0, 2, 4)]
    levels = [item.read().pixels.mean() for item in items]
    assert items[0].read().pixels.shape == (16, 32, 3)
    assert levels == pytest.approx([0, 100, 200], abs=6)


def test_a_broken_video_becomes_an_unreadable_item(tmp_path: Path) -> None:
    pytest.importorskip("av", reason="videos need PyAV")
    video = tmp_path / "road.mp4"
    video.write_bytes(b"no video at all" * 100)
    (item,) = find_items([str(video)])
    with pytest.raises(BadImageError, match="cannot be decoded"):
        item.read()
