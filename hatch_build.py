"""Builds what of clew is Rust, and puts it into the package: the runtime image and the path codec's library.

Runs on the build machine only: as hatchling's build hook (wheels, editable installs) and as a command
(`python hatch_build.py [runtime] [pathcodec]`), which the Makefile uses. It knows cargo's command lines and where the
files go; what good ones look like is the business of `checks/runtime_image.py` and `checks/codec_library.py`.
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


class CrateBuildError(Exception):
    """A crate could not be built; the message says what is missing."""


def find_cargo() -> str:
    """The path of cargo: on PATH, or where rustup puts it. Raises CrateBuildError when there is none."""
    cargo = shutil.which("cargo") or shutil.which("cargo", path=str(Path.home() / ".cargo" / "bin"))
    if cargo is None:
        raise CrateBuildError("building clew needs cargo (stable Rust): see https://rustup.rs")
    return cargo


def build_crate(crate: Crate, root: Path) -> Path:
    """Compile a crate below `root`, strip its product, and put it to its place in the package, whose path is returned.

    The file there is replaced by rename, so that a recording that starts meanwhile sees the old one or the new one.
    """
    folder = root / crate.folder
    if not (folder / "Cargo.toml").is_file():
        raise CrateBuildError(f"no sources at {folder}")
    target = Path(os.environ.get("CARGO_TARGET_DIR") or folder / "target")
    if subprocess.run([find_cargo(), *crate.command], cwd=folder, check=False).returncode != 0:
        raise CrateBuildError(f"cargo could not build {crate.folder}; its messages are above")
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


class CrateBuildHook(BuildHookInterface[BuilderConfig]):
    """Compiles the crates before a wheel or an editable install is made."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        for crate in CRATES:
            build_crate(crate, Path(self.root))
        build_data["pure_python"] = False
        build_data["tag"] = WHEEL_TAG


def main(names: list[str]) -> int:
    """Build the crates named, or all; return the exit status."""
    unknown = set(names) - {crate.folder for crate in CRATES}
    if unknown:
        print(f"hatch_build.py: no crate {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    try:
        for crate in CRATES:
            if not names or crate.folder in names:
                print(build_crate(crate, Path(__file__).resolve().parent))
    except CrateBuildError as error:
        print(f"hatch_build.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
