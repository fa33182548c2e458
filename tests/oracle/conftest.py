"""What the tests of the oracle share: what was stepped once."""

from __future__ import annotations

import os

import pytest

from tests.e2e.runs import ROOT
from tests.oracle.steps import SteppedOnce


@pytest.fixture(scope="session")
def step_once(tmp_path_factory: pytest.TempPathFactory) -> SteppedOnce:
    """Steps programs; what one test has stepped others have, too, whichever process they run in.

    What static programs do stays in build/stepped.
    """
    folder = tmp_path_factory.getbasetemp()
    shared = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "stepped"
    shared.mkdir(exist_ok=True)
    kept = ROOT / "build/stepped"
    kept.mkdir(parents=True, exist_ok=True)
    return SteppedOnce(shared, kept)
