"""`clew.Trace`: a trace, with what can be asked of it and made of it.

Runs in the controller. This stands above the exporters and the server, which know traces by their tables alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.analysis.trace import Trace as AnalysedTrace
from clew.errors import OutputError, OutputExistsError, UsageError

if TYPE_CHECKING:
    import os

    from clew.export.formats import Exporter, FolderExporter

__all__ = ["FORMATS", "Trace"]

FORMATS: Final = ("drcov", "este", "html")
"""What a trace can be exported to."""


class Trace(AnalysedTrace):
    """A finished trace, opened for reading: `clew.Trace("gzip.clew")`.

    Its tables are Arrow tables, read when they are first asked for, with the columns of docs/format/trace.md. Opening
    it raises NotATraceError, TraceUnfinishedError, TraceVersionError or TraceDamagedError; reading a table
    TraceDamagedError. All of them are ClewErrors.
    """

    def export(
        self,
        to: str,
        output: str | os.PathLike[str],
        *,
        replace: bool = False,
        whitelist: Iterable[str] | None = None,
        dynamic: bool = False,
        limit_mb: int | None = None,
    ) -> int:
        """Write the trace as `to`, one of FORMATS, to the file or folder `output`, as `clew export` does.

        `drcov` is what coverage viewers load, `este` a folder of blocks in the order in which they ran (mode full
        only), `html` the viewer with the trace in it. A file that is there already is left as it is unless `replace`.
        For `este`, `whitelist` has ends of the paths of images to tell of, by default the main executable, and
        `dynamic` adds code outside of all images. `limit_mb` is for `html`: how large the trace's part of the file may
        be, 32 unless given. Returns how many items were written: blocks, calls, answers. Raises UsageError,
        OutputExistsError, OutputError, and TraceDamagedError.
        """
        path = Path(output)
        if to not in FORMATS:
            raise UsageError(f"no such format: {to!r}; there is {', '.join(FORMATS)}")
        if to != "este" and (whitelist is not None or dynamic):
            raise UsageError("whitelist and dynamic are for este")
        if to != "html" and limit_mb is not None:
            raise UsageError("limit_mb is for html")
        try:
            if to == "este":
                return self._export_into(_este_exporter(whitelist, dynamic), path, replace)
            return self._export_file(_file_exporter(to, limit_mb), path, replace)
        except OSError as error:
            raise OutputError.from_os_error(path, error) from error

    def _export_file(self, exporter: Exporter, path: Path, replace: bool) -> int:
        from clew.export.file import new_file

        if path.is_file() and not replace:
            raise OutputExistsError(path, "choose another name, or replace it")
        with new_file(path) as file:
            return exporter.export(self, file)

    def _export_into(self, exporter: FolderExporter, path: Path, replace: bool) -> int:
        from clew.export.folder import new_folder

        with new_folder(path, may_add=replace) as folder:
            return exporter.export_into(self, folder).count


def _este_exporter(whitelist: Iterable[str] | None, dynamic: bool) -> FolderExporter:
    from clew.export.este.config import EsteScope
    from clew.export.este.exporter import EsteExporter

    return EsteExporter(EsteScope(None if whitelist is None else tuple(whitelist), dynamic))


def _file_exporter(to: str, limit_mb: int | None) -> Exporter:
    if to == "html":
        from clew.server.page_file import DEFAULT_LIMIT_MB, PageExporter

        return PageExporter(limit_mb or DEFAULT_LIMIT_MB)
    from clew.export.formats import EXPORTERS

    return EXPORTERS[to]
