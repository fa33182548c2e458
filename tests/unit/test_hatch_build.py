"""The build puts its products in place; cargo and npm are played by scripts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.plugin.utils import load_plugin_from_script

import hatch_build
from hatch_build import CODEC, CRATES, PAGE, RUNTIME, BuildError, build_crate, build_page

ROOT = Path(hatch_build.__file__).parent

# Leaves "FOLDER: ARGUMENTS" as either crate's product, or fails where the crate holds a file "broken".
CARGO = """#!/bin/sh
test ! -e broken || exit 101
made=${CARGO_TARGET_DIR:-../target}/release
mkdir -p "$made"
for product in clew-runtime libclew_pathcodec.so; do echo "$(basename "$PWD"): $*" > "$made/$product"; done
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with both crates. Nothing is stripped: what the script makes are no ELF files."""
    cargo = tmp_path / "bin/cargo"
    cargo.parent.mkdir()
    cargo.write_text(CARGO)
    cargo.chmod(0o755)
    for crate in CRATES:
        (tmp_path / crate.folder).mkdir()
        (tmp_path / crate.folder / "Cargo.toml").touch()
    monkeypatch.setattr(hatch_build, "find_cargo", lambda: str(cargo))
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.delenv("CARGO_TARGET_DIR", raising=False)
    return tmp_path


def test_hatchling_finds_the_hook() -> None:
    hook = load_plugin_from_script(hatch_build.__file__, str(ROOT), BuildHookInterface, "build_hook")
    assert hook.PLUGIN_NAME == "custom"


def test_each_crate_comes_to_its_place(root: Path) -> None:
    for crate in CRATES:
        assert build_crate(crate, root) == root / crate.package_path
    places = [root / crate.package_path for crate in CRATES]
    assert sorted(root.glob("src/clew/_runtime/*")) == sorted(places), "and nothing else is left"
    for crate, place in zip(CRATES, places, strict=True):
        assert place.read_text().startswith(f"{crate.folder}: {crate.command[0]} --release --locked ")
        assert os.access(place, os.X_OK)


@pytest.mark.parametrize("target", ["shared", "/absolute"])
def test_cargos_own_variable_says_where_it_builds(root: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    target = target.replace("/absolute", str(root / "elsewhere"))
    monkeypatch.setenv("CARGO_TARGET_DIR", target)
    for crate in CRATES:
        assert build_crate(crate, root).read_text().startswith(crate.folder)
        assert (root / crate.folder / target / "release" / crate.product).is_file()
        assert not (root / "target").exists()


def test_the_file_is_replaced_not_written_over(root: Path) -> None:
    place = build_crate(RUNTIME, root)
    place.write_text("old")
    with place.open() as old:
        build_crate(RUNTIME, root)
        assert old.read() == "old"
    assert place.read_text() != "old"


def test_what_can_not_be_built_leaves_the_old_file(root: Path) -> None:
    place = build_crate(CODEC, root)
    before = place.read_text()
    (root / "pathcodec/broken").touch()
    with pytest.raises(BuildError, match="could not build pathcodec"):
        build_crate(CODEC, root)
    assert place.read_text() == before


def test_missing_sources_are_named(root: Path) -> None:
    (root / "pathcodec/Cargo.toml").unlink()
    with pytest.raises(BuildError, match=r"no sources at .*/pathcodec"):
        build_crate(CODEC, root)


# Notes what it is told, and "builds" a page of one file, or fails at what the file "broken" names.
NPM = """#!/bin/sh
echo "$1" >> "$NOTES"
test "$(cat broken 2>/dev/null)" != "$1" || exit 1
test "$1" = ci || { mkdir -p "$CLEW_PAGE_DIRECTORY" && echo new > "$CLEW_PAGE_DIRECTORY/index.html"; }
"""


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with the page's sources and an old page; npm is played by a script."""
    npm = tmp_path / "bin/npm"
    npm.parent.mkdir()
    npm.write_text(NPM)
    npm.chmod(0o755)
    (tmp_path / "web").mkdir()
    (tmp_path / "web/package.json").touch()
    (tmp_path / PAGE / "assets").mkdir(parents=True)
    (tmp_path / PAGE / "index.html").write_text("old\n")
    (tmp_path / PAGE / "assets/old.js").touch()
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    monkeypatch.setattr("shutil.which", lambda name: str(npm) if name == "npm" else None)
    return tmp_path


def _built(root: Path) -> dict[str, str]:
    """Everything that lies in the package."""
    return {
        path.relative_to(root / "src").as_posix(): path.read_text()
        for path in (root / "src").rglob("*")
        if path.is_file()
    }


def test_the_page_is_installed_exactly_and_then_built(web: Path) -> None:
    assert build_page(web) == web / PAGE
    assert (web / "notes").read_text().split() == ["ci", "run"]
    assert _built(web) == {"clew/_page/index.html": "new\n"}, "and nothing of the old one is left"


@pytest.mark.parametrize("step", ["ci", "run"])
def test_a_page_that_can_not_be_built_leaves_the_old_one(web: Path, step: str) -> None:
    (web / "web/broken").write_text(step)
    with pytest.raises(BuildError, match=f"npm {step} failed"):
        build_page(web)
    assert _built(web) == {"clew/_page/index.html": "old\n", "clew/_page/assets/old.js": ""}


def test_without_the_pages_sources_the_page_that_is_there_is_taken(web: Path) -> None:
    """As in a source distribution: no npm is asked for."""
    (web / "web/package.json").unlink()
    assert build_page(web) == web / PAGE
    assert not (web / "notes").exists()
    (web / PAGE / "index.html").unlink()
    with pytest.raises(BuildError, match="no page at"):
        build_page(web)


def test_without_npm_what_to_install_is_said(web: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(BuildError, match=r"needs npm .*https://nodejs\.org"):
        build_page(web)


def test_nothing_that_is_built_is_in_git() -> None:
    places = ["src/clew/_page", "src/clew/_runtime", "web/node_modules", "web/dist", "build", "dist"]
    git = subprocess.run(["git", "ls-files", *places], cwd=ROOT, capture_output=True, text=True)
    if git.returncode != 0:
        pytest.skip(f"not in a git repository: {git.stderr.strip()}")
    assert git.stdout == ""
