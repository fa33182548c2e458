"""What of a session is about translated code: what there is, what is to be made anew, what is to be made ahead.

Runs in the controller, in whatever threads the caller has.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

if TYPE_CHECKING:
    from clew.recording.options.record_options import RecordOptions
    from clew.sessions.target import SessionTarget
    from clew.sessions.transforms.transformers import Transformers
    from clew.sessions.translated import TranslatedCode

__all__ = ["TranslationFacet"]

Array = npt.NDArray[Any]


class TranslationFacet:
    """Translated code."""

    _target: SessionTarget
    _options: RecordOptions
    _transformers: Transformers | None
    _translated: TranslatedCode | None = None

    def invalidate(self, where: str | Iterable[str] | None = None) -> None:
        """Have code translated anew when it is executed next; transformers are shown its blocks once more.

        `where` are images, symbols (`libc.so.6!malloc`) or ranges of addresses, as `include` takes them; by default it
        is all code, of all processes. Nobody needs this for code that the program changes, or `write` does. Counts stay
        as they are. Raises FilterError, ControlError: nothing that is loaded is called so.
        """
        from clew.sessions.code_changes import invalidate

        invalidate(self._target, where, self._transformers)

    def prefetch(self, addresses: Iterable[int]) -> None:
        """Have the blocks at these addresses translated now, though nobody executes them: a fork server's children have
        them from their parent then, instead of translating each what all need.

        It is done by a thread of the process, at once if it runs, before anything else when it goes on. What was
        translated is counted (`statistics["prefetched"]`), and so are addresses where that can't be done
        (`"prefetch_refused"`): without code, or of a block that may begin a restartable sequence.
        What is not executed counts nothing. Raises ControlError: in modes `coverage` and `region`; or where the process
        is stopped and more than 8192 wait.
        """
        from clew.sessions.code_changes import prefetch

        prefetch(self._target, list(addresses))

    def translated(self, pid: int | None = None) -> Array:
        """The blocks that are translated now, by addresses: `address`, `size` in bytes, `n_instructions`.

        Of the first process, or of `pid`. What went out of use is not among them; what was never executed is, if it was
        asked for by `prefetch`. A block ends where execution may go elsewhere, or where another one or a place begins
        that was known before. Raises ControlError, OutputError.
        """
        if self._translated is None:
            from clew.sessions.translated import TranslatedCode

            self._translated = TranslatedCode(Path(self._options.output))
        from clew.sessions.code_changes import have_all_recorded

        have_all_recorded(self._target)
        return self._translated.read(self._target.pid if pid is None else pid)
