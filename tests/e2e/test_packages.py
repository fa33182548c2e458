"""Packages as they are published: a source distribution with the page in it, and a wheel of that, made without npm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.e2e.runs import ROOT

pytestmark = [pytest.mark.stress, pytest.mark.timeout(1200)]

_NODE = ("node", "nodejs", "npm", "npx", "corepack")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is in git, as it is now: nothing built is in it."""
    if shutil.which("npm") is None:
        pytest.skip("there is no npm: the page can not be built")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    copy = tmp_path_factory.mktemp("sources")
    for name in listed.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def source_distribution(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build("sdist", sources, tmp_path_factory.mktemp("sdist"), dict(os.environ))


@pytest.fixture(scope="module")
def wheel(source_distribution: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made of the source distribution, where there is no Node.js."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(source_distribution) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = folder.iterdir()
    tools = _tools_without_node(tmp_path_factory.mktemp("tools"))
    assert shutil.which("npm", path=str(tools)) is None
    # What cargo built before is not built again by the next run of these tests.
    environment = os.environ | {"PATH": str(tools), "CARGO_TARGET_DIR": str(ROOT / "build/package-target")}
    return _build("wheel", unpacked, tmp_path_factory.mktemp("wheel"), environment)


def _tools_without_node(folder: Path) -> Path:
    """A folder with all commands of PATH but those of Node.js."""
    for directory in os.environ["PATH"].split(os.pathsep):
        if Path(directory).is_dir():
            for command in Path(directory).iterdir():
                if command.name not in _NODE and not (folder / command.name).is_symlink():
                    (folder / command.name).symlink_to(command)
    return folder


def _build(target: str, sources: Path, into: Path, environment: dict[str, str]) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into)]
    done = subprocess.run(command, cwd=sources, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    (built,) = into.iterdir()
    return built


def test_the_source_distribution_has_the_page_and_what_the_rest_is_built_from(source_distribution: Path) -> None:
    with tarfile.open(source_distribution) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"src/clew/_page/index.html", "hatch_build.py", "pyproject.toml", "Cargo.toml", "Cargo.lock"} <= names
    assert any(name.startswith("src/clew/_page/assets/") and name.endswith(".js") for name in names)
    assert not [name for name in names if name.startswith(("web/", "src/clew/_runtime", "target/"))]
    assert not [name for name in names if "node_modules" in name]


def test_the_wheel_has_the_page_and_what_was_compiled(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    compiled = {"clew/_runtime/clew-runtime-x86_64", "clew/_runtime/libclew-pathcodec.so"}
    assert {"clew/_page/index.html", "clew/__main__.py", *compiled} <= names
    assert not [name for name in names if name.startswith(("web/", "tests/", "src/"))]


def test_an_installed_wheel_records_and_shows(wheel: Path, tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    # zipfile keeps no permissions; installers give them back.
    (installed / "clew/_runtime/clew-runtime-x86_64").chmod(0o755)
    environment = os.environ | {"PYTHONPATH": str(installed)}
    command = [sys.executable, "-m", "clew"]
    where = [sys.executable, "-c", "import clew; print(clew.__file__)"]
    shown = subprocess.run(where, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
    assert shown.startswith(str(installed))
    recorded = [*command, "record", "-q", "-o", str(tmp_path / "t.clew"), "--", "/bin/true"]
    subprocess.run(recorded, cwd=tmp_path, env=environment, check=True, timeout=60)
    viewed = [*command, "view", "--port", "0", "--no-browser", str(tmp_path / "t.clew")]
    with subprocess.Popen(viewed, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith("http://127.0.0.1:")
        finally:
            process.terminate()
