"""numpy, and what else is loaded for arrays and tables, as cheaply as they come.

Runs in the controller, before numpy is imported, and only where the process is clew's own: nobody reads numpy's
documentation there, and what numpy needs for that alone is left out. A recording begins with numpy's core: the rest is
half of what importing it takes, and comes when something of it is asked for.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final

from clew.late import Late, importing

__all__ = ["prepare_numpy", "prepare_numpy_core"]

_DOCUMENTATION: Final = ("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars")
"""They give numpy's own functions and types their texts, and are nothing else: a seventh of what numpy executes when it
is imported. (Its own documentation is built without the second one, by the same means.)"""

_LATE: Final = ("ast", "decimal", "pickle", "pyarrow.types")
"""Modules that numpy's core and pyarrow import for functions that are seldom called."""

_OF_CORE: Final = ("bincount", "packbits", "ravel_multi_index", "unpackbits", "unravel_index")
"""What numpy has from its core without the core saying so."""

_SETS: Final = ("isin", "union1d", "unique")
"""What a recording needs beside the core, and what needs no more than the core itself; it is in `_SETS_MODULE`."""
_SETS_MODULE: Final = "numpy.lib._arraysetops_impl"


def prepare_numpy() -> None:
    """To be called before numpy is imported; otherwise it changes nothing."""
    # numpy's linear algebra would start threads that are of no use here.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Python has a library's functions all looked up when it is loaded, and Arrow has very many.
    sys.setdlopenflags(os.RTLD_LAZY)
    if "numpy" not in sys.modules:
        for name in _DOCUMENTATION:
            sys.modules[name] = ModuleType(name)


def prepare_numpy_core() -> None:
    """As `prepare_numpy`; numpy is imported, as its core until more of it is asked for."""
    prepare_numpy()
    if "numpy" in sys.modules:
        return
    spec = PathFinder.find_spec("numpy")
    if spec is None or not _has_core(spec):
        return
    for module in (*map(Late, _LATE), _Platform("platform")):
        sys.modules.setdefault(module.__name__, module)
    sys.modules["numpy"] = numpy = _Core(spec)
    numpy.begin()


def _has_core(spec: ModuleSpec) -> bool:
    """Whether its core is where it has been since numpy 2."""
    return any(os.path.exists(os.path.join(place, "_core")) for place in spec.submodule_search_locations or ())


class _Platform(Late):
    """platform. What uuid asks it for when it is imported is known without it."""

    @staticmethod
    def system() -> str:
        return os.uname().sysname


class _Typing(Late):
    """numpy.typing. What is needed of it to import clew's modules is for type checkers, and stands for nothing."""

    class NDArray:
        def __class_getitem__(cls, item: object) -> type[_Typing.NDArray]:
            return cls


class _Masked(Late):
    """numpy.ma, as long as there is no masked array: numpy and pyarrow ask whether what they are given is one."""

    class MaskedArray:
        pass

    @staticmethod
    def is_masked(_: object) -> bool:
        return False


class _Core(ModuleType):
    """numpy as its core has it. Who asks for more gets all of it, executed in this module's place."""

    def __init__(self, spec: ModuleSpec) -> None:
        super().__init__("numpy")
        self.__spec__, self.__loader__ = spec, spec.loader
        self.__file__, self.__path__ = spec.origin, list(spec.submodule_search_locations or ())
        self.typing = sys.modules["numpy.typing"] = _Typing("numpy.typing")
        self._is_loading = False

    def begin(self) -> None:
        """Import the core."""
        self._is_loading = True
        # What numpy asks of functions for its documentation, and to prove that its own go together.
        texts, arguments = ModuleType("inspect"), ModuleType("numpy._utils._inspect")
        texts.cleandoc, texts.signature = str, lambda _: None  # type: ignore[attr-defined]
        arguments.getargspec = lambda _: ([], None, None, None)  # type: ignore[attr-defined]
        with _stand_in(texts), _stand_in(arguments):
            # As numpy itself begins.
            from numpy import _distributor_init, _globals, version  # noqa: F401

            self.__version__ = version.version
            self._CopyMode, self._NoValue = _globals._CopyMode, _globals._NoValue
            import numpy._core as core
        self.__dict__.update({name: getattr(core.multiarray, name) for name in _OF_CORE})
        self.__dict__.update({name: getattr(core, name) for name in core.__all__})
        # As with masked arrays.
        self.matrix = type("matrix", (core.ndarray,), {})
        self.ma = sys.modules["numpy.ma"] = _Masked("numpy.ma")
        self._is_loading = False

    def __getattr__(self, name: str) -> Any:
        with importing:
            if self._is_loading:
                # What is imported just now looks whether it is here.
                raise AttributeError(f"module 'numpy' has no attribute {name!r}")
            self._is_loading = True
            try:
                if name in _SETS:
                    self._load_sets()
                else:
                    self._load_all()
            finally:
                self._is_loading = False
        return getattr(self, name)

    def _load_sets(self) -> None:
        # The package that they are in would import all that is in it.
        package = ModuleType("numpy.lib")
        package.__path__ = [os.path.join(place, "lib") for place in self.__path__]
        # For what functions return that are not asked for here.
        results = ModuleType("typing")
        results.NamedTuple = object  # type: ignore[attr-defined]
        with _stand_in(package), _stand_in(results):
            sets = importlib.import_module(_SETS_MODULE)
            del sys.modules[_SETS_MODULE]
        self.__dict__.update({name: getattr(sets, name) for name in _SETS})

    def _load_all(self) -> None:
        for name in ("ma", "typing"):
            if isinstance(sys.modules.get(f"numpy.{name}"), Late):
                del sys.modules[f"numpy.{name}"], self.__dict__[name]
        assert self.__spec__ is not None and self.__spec__.loader is not None
        self.__spec__.loader.exec_module(self)
        object.__setattr__(self, "__class__", ModuleType)


@contextlib.contextmanager
def _stand_in(module: ModuleType) -> Iterator[None]:
    """Meanwhile `module` is what is imported by its name."""
    name = module.__name__
    kept = sys.modules.get(name)
    sys.modules[name] = module
    try:
        yield
    finally:
        del sys.modules[name]
        if kept is not None:
            sys.modules[name] = kept
