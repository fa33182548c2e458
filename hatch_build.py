"""Builds the runtime image and puts it into the package.

Runs on the build machine only: as hatchling's build hook (wheels, editable installs) and as a command
(`python hatch_build.py`), which the Makefile uses. It knows cargo's command line and where the image goes;
what a good image looks like is `checks/runtime_image.py`'s business.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

RUNTIME_BINARY = "clew-runtime"
IMAGE_PATH = Path("src/clew/_runtime/clew-runtime-x86_64")
WHEEL_TAG = "py3-none-manylinux_2_17_x86_64"


class RuntimeBuildError(Exception):
    """The runtime image could not be built; the message says what is missing."""


def find_cargo() -> str:
    """The path of cargo: on PATH, or where rustup puts it. Raises RuntimeBuildError when there is none."""
    cargo = shutil.which("cargo") or shutil.which("cargo", path=str(Path.home() / ".cargo" / "bin"))
    if cargo is None:
        raise RuntimeBuildError("building clew needs cargo (stable Rust): see https://rustup.rs")
    return cargo


def build_runtime(root: Path) -> Path:
    """Compile the runtime below `root`, strip it, and put it to IMAGE_PATH, whose path is returned.

    The image is replaced by rename, so that a recording that starts meanwhile sees the old one or the new one.
    """
    runtime = root / "runtime"
    if not (runtime / "Cargo.toml").is_file():
        raise RuntimeBuildError(f"no runtime sources at {runtime}")
    target = Path(os.environ.get("CARGO_TARGET_DIR") or runtime / "target")
    command = [find_cargo(), "build", "--release", "--locked", "--bin", RUNTIME_BINARY]
    if subprocess.run(command, cwd=runtime, check=False).returncode != 0:
        raise RuntimeBuildError("cargo could not build the runtime; its messages are above")
    built = runtime / target / "release" / RUNTIME_BINARY
    image = root / IMAGE_PATH
    image.parent.mkdir(parents=True, exist_ok=True)
    partial = image.with_name(f"{image.name}.{os.getpid()}")
    shutil.copyfile(built, partial)
    strip = shutil.which("strip")
    if strip is not None:  # without it the image is only larger
        subprocess.run([strip, "--strip-all", str(partial)], check=True)
    partial.chmod(0o755)
    partial.replace(image)
    return image


class RuntimeBuildHook(BuildHookInterface[BuilderConfig]):
    """Compiles the runtime before a wheel or an editable install is made."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        build_runtime(Path(self.root))
        build_data["pure_python"] = False
        build_data["tag"] = WHEEL_TAG


if __name__ == "__main__":
    try:
        print(build_runtime(Path(__file__).resolve().parent))
    except RuntimeBuildError as error:
        sys.exit(f"hatch_build.py: {error}")
