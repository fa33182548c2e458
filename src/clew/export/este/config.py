"""What Este's files are to tell of, and its configuration file that says so.

Runs in the controller. Light: it is read before a program is recorded.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from clew.errors import UsageError

__all__ = ["EsteConfig", "EsteScope", "read_config"]

MAX_CONFIG_BYTES: Final = 1 << 20
_KEYS: Final = {
    "": {"title", "OUTPUT", "ANALYSIS-SCOPE"},
    "OUTPUT": {"output-dir"},
    "ANALYSIS-SCOPE": {"binary-whitelist", "log-dynamically-generated"},
}


@dataclass(frozen=True)
class EsteScope:
    """Which code is told of: images whose paths end with one of `whitelist`, in whatever case; None means the main
    executable. `has_dynamic`: code outside of all images, too."""

    whitelist: tuple[str, ...] | None = None
    has_dynamic: bool = False

    def is_whitelisted(self, path: str, *, is_main: bool) -> bool:
        """Whether the code of the image at `path` is told of."""
        if self.whitelist is None:
            return is_main
        return path.lower().endswith(tuple(suffix.lower() for suffix in self.whitelist))


@dataclass(frozen=True)
class EsteConfig:
    """A configuration: its title, the directory that the files go to, and the scope."""

    title: str
    output: Path
    scope: EsteScope


def read_config(path: Path) -> EsteConfig:
    """Read Este's configuration. Raises UsageError that names the file and what is wrong in it."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; name Este's configuration, a TOML file") from error
    if len(content) > MAX_CONFIG_BYTES:
        raise UsageError(f"{path}: larger than {MAX_CONFIG_BYTES >> 20} MiB: no configuration of Este")
    try:
        table = tomllib.loads(content.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{path}: no TOML: {error or 'nested too deeply'}") from error
    return _Reader(path, table).read()


class _Reader:
    def __init__(self, path: Path, table: dict[str, Any]) -> None:
        self._path = path
        self._tables = {"": table}
        for name in ("OUTPUT", "ANALYSIS-SCOPE"):
            self._tables[name] = self._get("", name, dict, "a table")

    def read(self) -> EsteConfig:
        unknown = [
            f"[{section}] {key}" if section else key
            for section, table in self._tables.items()
            for key in table
            if key not in _KEYS[section]
        ]
        if unknown:
            raise UsageError(f"{self._path}: clew knows no {', '.join(map(_show, unknown))}; remove it")
        title = self._get("", "title", str, "a string", "")
        output = self._get("OUTPUT", "output-dir", str, "a string")
        if not output or "\0" in output:
            raise UsageError(f"{self._path}: [OUTPUT] output-dir names no directory")
        whitelist = self._get("ANALYSIS-SCOPE", "binary-whitelist", list, "a list of strings")
        if not all(isinstance(suffix, str) for suffix in whitelist):
            raise UsageError(f"{self._path}: [ANALYSIS-SCOPE] binary-whitelist is to be a list of strings")
        has_dynamic = self._get("ANALYSIS-SCOPE", "log-dynamically-generated", bool, "true or false", False)
        return EsteConfig(title, Path(output), EsteScope(tuple(whitelist), has_dynamic))

    def _get(self, section: str, key: str, kind: type, what: str, default: Any = None) -> Any:
        name = f"[{section}] {key}" if section else f"[{key}]" if kind is dict else key
        if key not in self._tables[section]:
            if default is None:
                raise UsageError(f"{self._path}: {name} is missing; it is to be {what}")
            return default
        value = self._tables[section][key]
        if not isinstance(value, kind):
            raise UsageError(f"{self._path}: {name} is to be {what}")
        return value


def _show(name: str) -> str:
    """A name out of a file, short and on one line."""
    return name if name.isprintable() and len(name) <= 80 else repr(name)[:80]
