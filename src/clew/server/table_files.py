"""Tables of what is selected in the page, as files: CSV and Arrow.

Runs in the controller. Names in them are the traced program's own words. Arrow has them as they are. Spreadsheets take
a cell that begins with = + - @ for a formula, so in CSV such a text has an apostrophe in front; control characters are
written as \\x1b, so that a row is a line; all texts are quoted, addresses are hexadecimal.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv

from clew.analysis.replay.selected_tables import TABLES, find_edges_at, tabulate
from clew.errors import UsageError
from clew.server.call_tables import CALL_TABLES, tabulate_calls
from clew.server.query import Query
from clew.store.columns import Array

__all__ = ["MAX_ROWS", "TableFile", "make_table_file", "write_arrow", "write_csv"]

MAX_ROWS: Final = 1_000_000
"""Of a larger selection there is no file: the trace's own tables have it."""

_FORMULA: Final = re.compile(r"^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")


class TableFile(NamedTuple):
    """A file's content, and what it is."""

    content: bytes
    media_type: str


def make_table_file(query: Query) -> TableFile:
    """The table `of` what is asked for, `as` csv or arrow. Of blocks, edges or functions it has what is named by
    `block` or `function`, or by all functions that `text` (part of their name), `hide_stubs` and `hide_images` leave;
    executed by `threads`. Of calls, places, entities or touches it has what `tabulate_calls` is asked for.

    Raises UsageError for words that mean nothing, and for a table of too many rows.
    """
    of, kind = query.word("of"), query.word("as")
    if of not in (*TABLES, *CALL_TABLES):
        raise UsageError(f"of: {of[:40]!r} is none of {', '.join((*TABLES, *CALL_TABLES))}")
    if kind not in _WRITERS:
        raise UsageError(f"as: {kind[:40]!r} is none of {', '.join(_WRITERS)}")
    table = tabulate_calls(query, of, MAX_ROWS) if of in CALL_TABLES else _tabulate_code(query, of)
    write, media_type = _WRITERS[kind]
    return TableFile(write(table), media_type)


def _tabulate_code(query: Query, of: str) -> pa.Table:
    graph = query.served.graph(query.process_id)
    rows = _find_rows(query, of)
    if len(rows) > MAX_ROWS:
        raise UsageError(f"{len(rows)} rows are more than {MAX_ROWS}; the trace's own tables have all of them")
    return tabulate(graph, graph.count(query.threads()), of, rows, query.served.start_ns)


def write_csv(table: pa.Table) -> bytes:
    """The table as CSV (RFC 4180, but for lines that end in a newline only), with the names of columns on top."""
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name.endswith("address"):
            found = [None if value is None else hex(value) for value in column.to_pylist()]
            columns.append(pa.array(found, pa.string()))
        elif pa.types.is_string(column.type):
            found = [None if text is None else _make_safe(text) for text in column.to_pylist()]
            columns.append(pa.array(found, pa.string()))
        else:
            columns.append(column)
    sink = pa.BufferOutputStream()
    pa.csv.write_csv(pa.table(columns, table.column_names), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def write_arrow(table: pa.Table) -> bytes:
    """The table as an Arrow IPC file ("Feather 2"), not compressed: everything that reads Arrow reads that."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


_WRITERS: Final = {
    "csv": (write_csv, "text/csv; charset=utf-8"),
    "arrow": (write_arrow, "application/vnd.apache.arrow.file"),
}


def _make_safe(text: str) -> str:
    safe = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    return f"'{safe}" if _FORMULA.match(text) else safe


def _find_rows(query: Query, of: str) -> Array:
    """Indices of what is asked for, rising."""
    graph = query.served.graph(query.process_id)
    words = query.words()
    if "block" in words:
        blocks: Array = np.array([_check("block", query.number("block"), graph.n_blocks)])
        functions = np.unique(graph.function[blocks])
    else:
        functions = _find_functions(query)
        is_chosen = np.zeros(graph.n_functions, bool)
        is_chosen[functions] = True
        blocks = np.flatnonzero(is_chosen[graph.function])
    if of == "functions":
        return functions
    if of == "blocks":
        return blocks
    return np.arange(graph.n_edges) if len(blocks) == graph.n_blocks else find_edges_at(graph, blocks)


def _find_functions(query: Query) -> Array:
    graph = query.served.graph(query.process_id)
    if "function" in query.words():
        return np.array([_check("function", query.number("function"), graph.n_functions)])
    is_left: Array = np.ones(graph.n_functions, bool)
    text = query.word("text").lower()
    if text:
        is_left &= np.array([text in name.lower() for name in graph.names], bool)
    if query.flag("hide_stubs"):
        is_left &= ~graph.is_stub
    hidden = query.word("hide_images")
    if hidden:
        try:
            images = [int(word) for word in hidden.split(",")]
        except ValueError:
            raise UsageError(f"hide_images: {hidden[:40]!r} is no list of numbers") from None
        # -1 is what lies outside of all images.
        is_left &= ~np.isin(graph.image, np.array([_check("image", one, len(graph.images), -1) for one in images]))
    return np.flatnonzero(is_left)


def _check(name: str, index: int, n: int, least: int = 0) -> int:
    if not least <= index < n:
        raise UsageError(f"{name}: there are {n}")
    return index
