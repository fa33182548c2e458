"""numpy without its documentation, and its core alone, do what numpy does."""

from __future__ import annotations

import subprocess
import sys

import pytest

PREPARED = """
from clew.cli.light_numpy import {prepare}
{prepare}()
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

CORE = """
from clew.cli.light_numpy import prepare_numpy_core
prepare_numpy_core()
import sys
import numpy as np
import numpy.typing as npt
import pyarrow as pa

Array = npt.NDArray[np.uint64]
assert np.unique([3, 1, 3]).tolist() == [1, 3] and np.isin([1, 2], [2]).tolist() == [False, True]
assert np.flatnonzero(np.ravel([0, 5])).tolist() == [1] and np.unpackbits(np.uint8([128]))[0] == 1
assert pa.array(np.arange(3)).to_numpy().dtype == np.int64
for name in ("numpy.lib", "numpy.linalg", "numpy._typing", "numpy.ma.core", "inspect", "dis"):
    assert name not in sys.modules, name

# What the core has is what numpy has, once all of it is there.
core = {name: value for name, value in vars(np).items() if not name.startswith("_")}
assert np.linalg.norm(np.array([3.0, 4.0])) == 5.0
assert "numpy.lib._arraysetops_impl" in sys.modules and np.lib._arraysetops_impl.unique is np.unique
others = [name for name, value in core.items() if vars(np).get(name, np) is not value]
assert set(others) <= {"isin", "union1d", "unique", "matrix", "ma", "typing"}, others
assert np.append([1], 2).tolist() == [1, 2] and np.ma.is_masked(np.ma.array([1], mask=[True]))
assert isinstance(np.ma.array([1]), np.ma.MaskedArray)
assert isinstance(np.matrix([1]), np.matrix) and np.ravel(np.matrix([1])).shape == (1,)

# Modules that were put off are there when something of them is asked for.
import ast, decimal, inspect, pickle
import numpy.typing
assert ast.literal_eval("[1]") == [1] and decimal.Decimal("0.5") * 2 == 1
assert pickle.loads(pickle.dumps(np.arange(2))).tolist() == [0, 1]
assert inspect.cleandoc(" a") == "a" and numpy.typing.ArrayLike is not None
try:
    np.no_such_name
    raise SystemExit("numpy has a name that it has not")
except AttributeError as error:
    assert "no_such_name" in str(error)
"""


def run(program: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-c", program, *arguments], check=True, timeout=60)


@pytest.mark.parametrize("prepare", ["prepare_numpy", "prepare_numpy_core"])
def test_it_works_without_its_documentation(prepare: str) -> None:
    run(PREPARED.format(prepare=prepare))


def test_the_core_becomes_numpy_when_more_is_asked_for() -> None:
    run(CORE)


@pytest.mark.parametrize("prepare", ["prepare_numpy", "prepare_numpy_core"])
def test_what_is_imported_already_is_left_alone(prepare: str) -> None:
    run(f"import numpy as np; from clew.cli.light_numpy import {prepare}; {prepare}(); assert np.sin.__doc__")
