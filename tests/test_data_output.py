"""Output files appear whole or not at all."""

import os

import pytest

from calibrant.data._output import written_beside
from calibrant.errors import InputError, OutputExistsError


def test_the_new_content_takes_the_place(tmp_path):
    with written_beside(tmp_path / "a.txt") as beside:
        beside.write_text("new")
        assert not (tmp_path / "a.txt").exists()
    assert (tmp_path / "a.txt").read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


def write(path, text, *, force=False, then=lambda: None):
    with written_beside(path, force=force) as beside:
        beside.write_text(text)
        then()


def stop(reason):
    raise reason


def test_an_existing_file_is_kept_without_force(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(OutputExistsError, match=r"a.txt' exists and was left as it is.*--force"):
        write(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").read_text() == "old"
    write(tmp_path / "a.txt", "new", force=True)
    assert (tmp_path / "a.txt").read_text() == "new"


@pytest.mark.parametrize("reason", [RuntimeError("x"), KeyboardInterrupt()])
def test_what_breaks_half_way_leaves_nothing(tmp_path, reason):
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(type(reason)):
        write(tmp_path / "a.txt", "half", force=True, then=lambda: stop(reason))
    assert os.listdir(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_a_full_disk_is_the_users_to_solve(tmp_path):
    full = OSError(28, "No space left on device")
    with pytest.raises(InputError, match="could not be written: No space left on device"):
        write(tmp_path / "a.txt", "half", then=lambda: stop(full))
    assert os.listdir(tmp_path) == []


def test_a_file_that_appears_meanwhile_is_kept(tmp_path):
    with pytest.raises(OutputExistsError):
        write(tmp_path / "a.txt", "mine", then=lambda: (tmp_path / "a.txt").write_text("theirs"))
    assert (tmp_path / "a.txt").read_text() == "theirs"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize(
    "name, said",
    [("", "is a folder"), ("none/a.txt", "folder of the output .* does not exist"), ("x.txt/a.txt", "Not a directory")],
)
def test_places_that_cannot_be_written(tmp_path, name, said):
    (tmp_path / "x.txt").write_text("")
    with pytest.raises(InputError, match=said):
        write(tmp_path / name, "new")


@pytest.mark.skipif(os.name != "posix", reason="devices and links of POSIX")
def test_devices_are_refused_and_links_followed(tmp_path):
    with pytest.raises(InputError, match="not a regular file"):
        write("/dev/null", "new", force=True)
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write(tmp_path / "link.txt", "new", force=True)
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"
