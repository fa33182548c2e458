"""A folder of files is there when all of them are, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.errors import OutputExistsError
from clew.export.folder import new_folder


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_new(tmp_path: Path) -> None:
    with new_folder(tmp_path / "a/b", may_add=False) as folder:
        (folder / "one").write_text("1")
        assert not (tmp_path / "a/b").exists()
    assert names(tmp_path) == {"a", "a/b", "a/b/one"}


def test_empty_folders_are_used(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with new_folder(tmp_path / "a", may_add=False) as folder:
        (folder / "one").write_text("1")
    assert names(tmp_path) == {"a", "a/one"}


def test_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/mine").write_text("mine")
    with pytest.raises(OutputExistsError, match="--force"), new_folder(tmp_path / "a", may_add=False):
        raise AssertionError("it is there")
    assert names(tmp_path) == {"a", "a/mine"}


def test_files_are_added_and_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/mine").write_text("mine")
    (tmp_path / "a/one").write_text("old")
    with new_folder(tmp_path / "a", may_add=True) as folder:
        (folder / "one").write_text("new")
        assert (tmp_path / "a/one").read_text() == "old"
    assert names(tmp_path) == {"a", "a/mine", "a/one"}
    assert (tmp_path / "a/one").read_text() == "new" and (tmp_path / "a/mine").read_text() == "mine"


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to("a")
    with new_folder(tmp_path / "link", may_add=False) as folder:
        (folder / "one").write_text("1")
    assert (tmp_path / "link").is_symlink() and names(tmp_path) == {"link", "a", "a/one"}


@pytest.mark.parametrize("is_there", [False, True])
def test_nothing_is_left_of_a_failure(tmp_path: Path, is_there: bool) -> None:
    if is_there:
        (tmp_path / "a").mkdir()
        (tmp_path / "a/one").write_text("old")
    before = names(tmp_path)
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "a", may_add=True) as folder:
        (folder / "one").write_text("new")
        raise KeyboardInterrupt
    assert names(tmp_path) == before
    assert not is_there or (tmp_path / "a/one").read_text() == "old"


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file")
    for may_add in (False, True):
        with pytest.raises(NotADirectoryError), new_folder(tmp_path / "a", may_add=may_add):
            raise AssertionError("it is a file")
    assert names(tmp_path) == {"a"}
