"""numpy without its documentation does what it does with it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
from clew.cli.light_numpy import prepare_numpy
prepare_numpy()
import numpy as np, os
assert len(os.listdir("/proc/self/task")) == 1, "threads were started"
import pyarrow as pa
assert np._core._add_newdocs.__dict__.get("add_newdoc") is None, "the name of the module has changed"
assert np.ndarray.__doc__ is None and np.sum.__doc__ is not None
assert np.argsort(np.array([3, 1, 2], np.uint64)).tolist() == [1, 2, 0]
assert np.cumsum(np.ones(3)).sum() == 6.0
assert np.linalg.norm(np.array([3.0, 4.0])) == 5.0
assert pa.array(np.arange(3)).to_pylist() == [0, 1, 2]
"""


def test_it_works_without_its_documentation() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=60)


def test_what_is_imported_already_is_left_alone() -> None:
    program = (
        "import numpy as np; from clew.cli.light_numpy import prepare_numpy; prepare_numpy(); assert np.sin.__doc__"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
