"""The formats that traces can be exported to.

Runs in the controller. To add one: an exporter in a file of its own, and a line here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final, Protocol

from clew.export.drcov import DrcovExporter
from clew.export.este.exporter import EsteExporter
from clew.export.folder import Written
from clew.store.trace import Trace

__all__ = ["EXPORTERS", "FOLDER_EXPORTERS", "Exporter", "FolderExporter"]


class Exporter(Protocol):
    """Writes a trace in one format. `suffix` is what its files' names end with, `items` what it counts, of which
    `part` says what is in them, if not all; `notes` are lines about what was written last."""

    @property
    def name(self) -> str: ...

    @property
    def suffix(self) -> str: ...

    @property
    def items(self) -> str: ...

    @property
    def part(self) -> str: ...

    @property
    def notes(self) -> Sequence[str]: ...

    def export(self, trace: Trace, file: IO[bytes]) -> int:
        """Write `trace` to `file`; how many of the format's items were written."""


class FolderExporter(Protocol):
    """Writes a trace in a format of several files. `suffix` is what the name of their folder ends with."""

    @property
    def name(self) -> str: ...

    @property
    def suffix(self) -> str: ...

    def export_into(self, trace: Trace, folder: Path) -> Written:
        """Write files about `trace` into `folder`, which is there and empty."""


EXPORTERS: Final[dict[str, Exporter]] = {exporter.name: exporter for exporter in [DrcovExporter()]}
"""Exporters by the name of their format."""

FOLDER_EXPORTERS: Final[dict[str, FolderExporter]] = {exporter.name: exporter for exporter in [EsteExporter()]}
"""Exporters to folders by the name of their format."""
