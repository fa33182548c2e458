"""Memory of the controller while it assembles a trace: what is freed is used again.

Runs in the controller. To be asked before anything imports pyarrow.
"""

from __future__ import annotations

import os
import sys

from clew.process.linux import give_back_memory, keep_freed_memory

__all__ = ["give_back_memory", "reuse_memory"]

_POOL_VARIABLE = "ARROW_DEFAULT_MEMORY_POOL"


def reuse_memory() -> None:
    """Have arrays of numpy and of Arrow come from the C library, and what one of them frees serve the other.

    Arrow's own pool takes fresh memory in huge pages, which the kernel clears first. It reads its variable
    once, when it is imported; the programs that are recorded never see it. Where pyarrow is there already,
    its pool stays as it is.
    """
    keep_freed_memory()
    if "pyarrow" in sys.modules or _POOL_VARIABLE in os.environ:
        return
    os.environ[_POOL_VARIABLE] = "system"
    try:
        import pyarrow  # noqa: F401
    finally:
        del os.environ[_POOL_VARIABLE]
