"""What of a session is about code that is changed as it is translated.

Runs in the controller, in whatever threads the caller has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from clew.sessions.call_probes import CallProbes
    from clew.sessions.target import SessionTarget
    from clew.sessions.transforms.native import NativeCode, NativeCodes
    from clew.sessions.transforms.transformers import Transform, Transformer, Transformers

__all__ = ["TransformsFacet"]


class TransformsFacet:
    """Transformers."""

    _probes: CallProbes
    _target: SessionTarget
    _transformers: Transformers | None = None
    _natives: NativeCodes | None = None

    @overload
    def transform(self, where: str | Iterable[str] | None, function: Transform) -> Transformer: ...

    @overload
    def transform(self, where: str | Iterable[str] | None = ...) -> Callable[[Transform], Transformer]: ...

    def transform(
        self, where: str | Iterable[str] | None = None, function: Transform | None = None
    ) -> Transformer | Callable[[Transform], Transformer]:
        """Show `function` each block of code once, before it is translated: it says what is to be changed in it.

        `where` are images, symbols (`libc.so.6!malloc`) or ranges of addresses, as `include` takes them: other code
        costs nothing. By default it is all code, also what comes later. The thread that comes to a block waits
        meanwhile, two seconds at most; then the block is translated as it is. Children execute what was changed in
        their parent. Counts and events tell of the program's own instructions, in blocks as the program has them.
        Without `function` it is a decorator. Raises FilterError, ControlError.
        """
        add = self._open_transformers().add(where)
        return add if function is None else add(function)

    def compile(self, source: str) -> NativeCode:
        """Compile C for callouts (`CodeInstruction.call`), by the machine's C compiler.

        Functions that are called are declared `CLEW_CALLOUT`, without arguments or with a `struct clew_registers *`;
        so are those that they call, unless these are inlined. There is no library. Variables lie in memory that both
        sides see, zeroed or as initialised, for each process its own; threads share them. Raises TransformError.
        """
        if self._natives is None:
            from clew.sessions.transforms.native import NativeCodes

            self._natives = NativeCodes(self._scratch())
        return self._natives.compile(source)

    def _scratch(self) -> Path:
        raise NotImplementedError

    def _open_transformers(self) -> Transformers:
        if self._transformers is None:
            from clew.sessions.transforms.transformers import Transformers

            self._transformers = Transformers(self._target, self._probes)
        return self._transformers
