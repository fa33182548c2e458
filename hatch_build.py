"""Builds what of clew is not Python, and puts it into the package: the runtime image, the path codec, the page.

Runs on the build machine only: as hatchling's build hook (wheels, editable installs, source distributions) and as a
command (`python hatch_build.py [runtime] [pathcodec] [web]`), which the Makefile uses. It knows cargo's and npm's
command lines and where the files go; what good ones look like is the business of `checks/runtime_image.py` and
`checks/codec_library.py`. A source distribution brings the page built, so that a wheel made of it needs no npm.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE_SOURCES = "web"
PAGE = Path("src/clew/_page")
WHEEL_TAG = "py3-none-manylinux_2_17_x86_64"


class Crate(NamedTuple):  # hatchling runs this file as no module that a dataclass could find
    """A crate whose product is part of the package.

    `folder` is where it lies and `command` what cargo is told; `product` is the name of what that makes, and
    `package_path` where it goes, from the root.
    """

    folder: str
    command: tuple[str, ...]
    product: str
    package_path: Path


RUNTIME = Crate(
    folder="runtime",
    command=("build", "--release", "--locked", "--bin", "clew-runtime"),
    product="clew-runtime",
    package_path=Path("src/clew/_runtime/clew-runtime-x86_64"),
)
CODEC = Crate(
    folder="pathcodec",
    command=(
        *("rustc", "--release", "--locked", "--lib", "--crate-type", "cdylib", "--features", "loaded"),
        # It needs nothing of C's, not even its constructors.
        *("--", "-C", "link-arg=-nostartfiles"),
    ),
    product="libclew_pathcodec.so",
    package_path=Path("src/clew/_runtime/libclew-pathcodec.so"),
)
CRATES = (RUNTIME, CODEC)


class BuildError(Exception):
    """A part could not be built; the message says what is missing."""


def find_cargo() -> str:
    """The path of cargo: on PATH, or where rustup puts it. Raises BuildError when there is none."""
    cargo = shutil.which("cargo") or shutil.which("cargo", path=str(Path.home() / ".cargo" / "bin"))
    if cargo is None:
        raise BuildError("building clew needs cargo (stable Rust): see https://rustup.rs")
    return cargo


def build_crate(crate: Crate, root: Path) -> Path:
    """Compile a crate below `root`, strip its product, and put it to its place in the package, whose path is returned.

    The file there is replaced by rename, so that a recording that starts meanwhile sees the old one or the new one.
    """
    folder = root / crate.folder
    if not (folder / "Cargo.toml").is_file():
        raise BuildError(f"no sources at {folder}")
    target = Path(os.environ.get("CARGO_TARGET_DIR") or "../target")
    if subprocess.run([find_cargo(), *crate.command], cwd=folder, check=False).returncode != 0:
        raise BuildError(f"cargo could not build {crate.folder}; its messages are above")
    built = folder / target / "release" / crate.product
    path = root / crate.package_path
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    shutil.copyfile(built, partial)
    strip = shutil.which("strip")
    if strip is not None:  # without it the file is only larger
        subprocess.run([strip, "--strip-all", str(partial)], check=True)
    partial.chmod(0o755)
    partial.replace(path)
    return path


def build_page(root: Path) -> Path:
    """Build the viewer's page below `root` into the package, and return where it is.

    Where there are no sources of it, as in a source distribution, the page that is there already is the one.
    """
    folder, page = root / PAGE_SOURCES, root / PAGE
    if not (folder / "package.json").is_file():
        if not (page / "index.html").is_file():
            raise BuildError(f"no sources at {folder}, and no page at {page}")
        return page
    npm = shutil.which("npm")
    if npm is None:
        raise BuildError("building the viewer's page needs npm (Node.js 20 or newer): see https://nodejs.org")
    # What a build leaves may be seen half made: it is made beside the page, which is exchanged then.
    partial = page.with_name(f"{page.name}.{os.getpid()}")
    environment = os.environ | {"CLEW_PAGE_DIRECTORY": str(partial.resolve())}
    try:
        for command in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
            if subprocess.run([npm, *command], cwd=folder, env=environment, check=False).returncode != 0:
                raise BuildError(f"npm {command[0]} failed in {folder}; its messages are above")
        shutil.rmtree(page, ignore_errors=True)
        partial.rename(page)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return page


class PartsBuildHook(BuildHookInterface[BuilderConfig]):
    """Builds the crates and the page before a wheel or an editable install is made, the page before an sdist."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        # An editable install uses what lies in the package, which the Makefile keeps up to date.
        if self.target_name == "sdist" or version != "editable":
            build_page(Path(self.root))
        if self.target_name != "wheel":
            return
        for crate in CRATES:
            build_crate(crate, Path(self.root))
        build_data["pure_python"] = False
        build_data["tag"] = WHEEL_TAG


def main(names: list[str]) -> int:
    """Build the parts named by their folders, or all; return the exit status."""
    unknown = set(names) - {PAGE_SOURCES, *(crate.folder for crate in CRATES)}
    if unknown:
        print(f"hatch_build.py: no part {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    try:
        if not names or PAGE_SOURCES in names:
            print(build_page(Path(__file__).resolve().parent))
        for crate in CRATES:
            if not names or crate.folder in names:
                print(build_crate(crate, Path(__file__).resolve().parent))
    except BuildError as error:
        print(f"hatch_build.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
