"""numpy, and what else is loaded for arrays and tables, as cheaply as they come.

Runs in the controller, before numpy is imported, and only where the process is clew's own: nobody reads numpy's
documentation there.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Final

__all__ = ["prepare_numpy"]

_DOCUMENTATION: Final = ("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars")
"""They give numpy's own functions and types their texts, and are nothing else: a seventh of what numpy executes when it
is imported. (Its own documentation is built without the second one, by the same means.)"""


def prepare_numpy() -> None:
    """To be called before numpy is imported; otherwise it changes nothing."""
    # numpy's linear algebra would start threads that are of no use here.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Python has a library's functions all looked up when it is loaded, and Arrow has very many.
    sys.setdlopenflags(os.RTLD_LAZY)
    if "numpy" not in sys.modules:
        for name in _DOCUMENTATION:
            sys.modules[name] = ModuleType(name)
