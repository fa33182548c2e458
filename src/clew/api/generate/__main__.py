"""Writes clew's own descriptions of system calls: `python -m clew.api.generate [--check]`.

Runs on a developer's machine, from the repository; needs neither a kernel's tables nor headers, see `capture.py`. With
--check it writes nothing and fails if a file is not up to date.
"""

from __future__ import annotations

import argparse
import sys

from clew.api.generate.descriptions import HintError, flag_tables_content, format_content, system_calls_content
from clew.api.generate.effects import EffectError
from clew.api.generate.libraries import libraries_content
from clew.api.generate.ring_operations import RingError, ring_operations_content
from clew.api.generate.sources import Sources, read_sources
from clew.api.generate.structs import StructError, structs_content
from clew.api.reading import BUILT_IN

__all__ = ["generated_files", "main"]


def generated_files(sources: Sources) -> dict[str, str]:
    """The text of each generated file, by its name. Raises HintError, EffectError,
    StructError, RingError."""
    tables, calls = flag_tables_content(sources), system_calls_content(sources)
    operations = ring_operations_content(sources.ring_operations, calls["SystemCalls"], tables["FlagTables"])
    return {
        "flag_tables.json": format_content(tables),
        "structs.json": format_content(structs_content(sources)),
        "system_calls.json": format_content(calls),
        "ring_operations.json": format_content(operations),
        "libraries.json": format_content(
            libraries_content(sources.library_lines, sources.flag_tables, calls["SystemCalls"])
        ),
    }


def main(arguments: list[str]) -> int:
    """Write or check the files; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m clew.api.generate")
    parser.add_argument("--check", action="store_true", help="write nothing, fail if a file is not up to date")
    is_check = parser.parse_args(arguments).check
    try:
        files = generated_files(read_sources())
    except (HintError, EffectError, StructError, RingError) as error:
        names = {HintError: "hints", EffectError: "effects", StructError: "structs", RingError: "ring_operations"}
        print(f"{names[type(error)]}.json: {error}", file=sys.stderr)
        return 1
    status = 0
    for path in BUILT_IN:
        text = files[path.name]
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        if is_check:
            print(f"{path} is not up to date: python -m clew.api.generate", file=sys.stderr)
            status = 1
        else:
            path.write_text(text, encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
