"""The manifest of a trace: what was recorded, how it ended, what was lost, which tables there are.

Runs in the controller. A manifest read may be damaged, or made up: its shape is checked before it is used.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from clew.dataclass import dataclass, field
from clew.errors import NotATraceError, TraceDamagedError, TraceUnfinishedError, TraceVersionError
from clew.store.names import JOURNAL_NAME, MANIFEST_NAME
from clew.store.schema import FORMAT_VERSION, OPTIONAL_TABLES, SCHEMAS

__all__ = ["Manifest", "read_manifest"]

MAX_MANIFEST_BYTES: Final = 1 << 26


@dataclass(frozen=True)
class Manifest:
    """What `manifest.json` holds, key by field.

    `losses` counts what is not in the trace, by name; all 0 in a whole one. `releases` tells of threads that went on
    natively though nobody asked for it: for each process and reason `pid`, `reason`, how many `threads`, and
    `since_ns`, when the first did, in nanoseconds since 1970. `cpu` has `target_seconds`, where they are known, and
    `controller_seconds`. `tables` has, by name of table, `rows` and `parts`: paths of files relative to the trace.
    """

    command: list[str]
    mode: str
    include: list[str]
    exclude: list[str]
    start_ns: int
    end_ns: int
    clew_version: str
    machine: dict[str, Any]
    cpu: dict[str, float]
    losses: dict[str, int]
    processes: list[dict[str, Any]]
    warnings: list[str]
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    format: int = FORMAT_VERSION
    releases: list[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> str:
        """The text of the file."""
        return json.dumps(vars(self), indent=1) + "\n"

    @property
    def lost_records(self) -> int:
        """How many records of the runtime are missing: dropped, or damaged."""
        return self.losses.get("dropped_records", 0) + self.losses.get("damaged_records", 0)


_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "command": list,
    "mode": str,
    "include": list,
    "exclude": list,
    "start_ns": int,
    "end_ns": int,
    "clew_version": str,
    "machine": dict,
    "cpu": dict,
    "losses": dict,
    "processes": list,
    "warnings": list,
    "tables": dict,
    "format": int,
    "releases": list,
}
_RELEASE: Final = {"pid": int, "reason": str, "threads": int, "since_ns": int}
"""A row of `releases`."""


def read_manifest(directory: Path) -> Manifest:
    """The manifest of the trace in `directory`.

    Raises NotATraceError, TraceUnfinishedError, TraceVersionError or TraceDamagedError.
    """
    path = directory / MANIFEST_NAME
    if not directory.is_dir():
        reason = "not a trace: a trace is a directory" if directory.exists() else "no such trace"
        raise NotATraceError(directory, reason)
    try:
        with path.open("rb") as file:
            text = file.read(MAX_MANIFEST_BYTES + 1)
    except FileNotFoundError:
        if (directory / JOURNAL_NAME).exists():
            reason = (
                "this trace is being written, or its recording was cut off; wait for the `clew record` or "
                "`clew attach` that writes it to end, or finish it with `clew recover`"
            )
            raise TraceUnfinishedError(directory, reason) from None
        raise NotATraceError(directory, f"not a trace: it has no {MANIFEST_NAME}") from None
    except OSError as error:
        raise TraceDamagedError(directory, f"{MANIFEST_NAME}: {error.strerror}") from error
    if len(text) > MAX_MANIFEST_BYTES:
        raise TraceDamagedError(directory, f"{MANIFEST_NAME} is too large")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise TraceDamagedError(directory, f"{MANIFEST_NAME} is damaged or truncated") from None
    if not isinstance(content, dict):
        raise TraceDamagedError(directory, f"{MANIFEST_NAME} is damaged")
    version = content.get("format")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise TraceVersionError(
            directory,
            f"a newer clew wrote this trace (format {version}, this one reads up to {FORMAT_VERSION}); update",
        )
    # Older traces have events of them only.
    content.setdefault("releases", [])
    for key, kind in _TYPES.items():
        if not isinstance(content.get(key), kind):
            raise TraceDamagedError(directory, f"{MANIFEST_NAME} is damaged: {key!r} is missing or of the wrong type")
    _check_contents(directory, content)
    return Manifest(**{key: content[key] for key in _TYPES})


def _check_contents(directory: Path, content: dict[str, Any]) -> None:
    def require(is_sound: bool, key: str) -> None:
        if not is_sound:
            raise TraceDamagedError(directory, f"{MANIFEST_NAME} is damaged: {key!r} has an impossible value")

    for key in ("command", "include", "exclude", "warnings"):
        require(all(isinstance(word, str) for word in content[key]), key)
    require(all(isinstance(value, int) for value in content["losses"].values()), "losses")
    require(all(isinstance(value, int | float) for value in content["cpu"].values()), "cpu")
    require(all(isinstance(row, dict) and isinstance(row.get("pid"), int) for row in content["processes"]), "processes")
    for row in content["releases"]:
        require(isinstance(row, dict) and row.keys() == _RELEASE.keys(), "releases")
        require(all(isinstance(row[key], kind) for key, kind in _RELEASE.items()), "releases")
    for name in SCHEMAS:
        if name in OPTIONAL_TABLES:
            content["tables"].setdefault(name, {"rows": 0, "parts": []})
        table = content["tables"].get(name)
        require(isinstance(table, dict) and isinstance(table.get("rows"), int), "tables")
        parts = table.get("parts")
        require(isinstance(parts, list) and all(_is_inside(part) for part in parts), "tables")


def _is_inside(part: object) -> bool:
    """Whether a part's path stays inside the trace."""
    return isinstance(part, str) and not part.startswith("/") and ".." not in part.split("/") and "\0" not in part
