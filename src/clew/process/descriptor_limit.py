"""How many descriptors this process may have: every followed process takes some.

Runs in the controller. What is started before the limit is raised does not inherit that.
"""

from __future__ import annotations

import contextlib
import resource

__all__ = ["DescriptorLimit"]


class DescriptorLimit:
    """The soft limit, raised to the hard one by `lift`, and put back by `restore`."""

    def __init__(self) -> None:
        self._original: tuple[int, int] | None = None

    def lift(self) -> None:
        """Allow as many as may be; more than that is not an error."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if self._original is None and soft != hard:
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
                self._original = soft, hard

    def restore(self) -> None:
        """Have the limit as it was."""
        if self._original is not None:
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, self._original)
            self._original = None
