"""The build puts its products in place; cargo is played by a script."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.plugin.utils import load_plugin_from_script

import hatch_build
from hatch_build import CODEC, CRATES, RUNTIME, CrateBuildError, build_crate

ROOT = Path(hatch_build.__file__).parent

# Leaves "FOLDER: ARGUMENTS" as either crate's product, or fails where the crate holds a file "broken".
CARGO = """#!/bin/sh
test ! -e broken || exit 101
made=${CARGO_TARGET_DIR:-target}/release
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
        assert not (root / crate.folder / "target").exists()


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
    with pytest.raises(CrateBuildError, match="could not build pathcodec"):
        build_crate(CODEC, root)
    assert place.read_text() == before


def test_missing_sources_are_named(root: Path) -> None:
    (root / "pathcodec/Cargo.toml").unlink()
    with pytest.raises(CrateBuildError, match=r"no sources at .*/pathcodec"):
        build_crate(CODEC, root)
