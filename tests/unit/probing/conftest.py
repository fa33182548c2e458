"""Functions whose code is patched and run in this very process."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.unit.probing.native import Native

HERE = Path(__file__).parent
BUILDS = {
    "O0": ("-O0",),
    "O2": ("-O2", "-fcf-protection=none"),
    "Os": ("-Os", "-fcf-protection=full"),
}


@pytest.fixture(scope="session", params=sorted(BUILDS))
def native(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Native:
    """The functions, compiled in several ways, and what runs them."""
    folder = tmp_path_factory.mktemp("probing")
    library, harness = folder / f"functions-{request.param}.so", folder / f"harness-{request.param}.so"
    options = ["gcc", "-shared", "-fPIC", "-mno-avx", "-Wl,-z,now", "-Wl,-Bsymbolic"]
    subprocess.run(
        [*options, *BUILDS[request.param], "-o", library, HERE / "functions.c", HERE / "functions.S"], check=True
    )
    subprocess.run([*options, "-O2", "-fcf-protection=none", "-o", harness, HERE / "harness.c"], check=True)
    return Native(library, harness)
