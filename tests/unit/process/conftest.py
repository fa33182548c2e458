"""The stand-in for the runtime, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.process.fake_runtime import build_fake_runtime


@pytest.fixture(scope="session")
def fake_runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fake_runtime(tmp_path_factory.mktemp("fake-runtime"))
