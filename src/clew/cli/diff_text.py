"""What differs between two traces, for people.

Runs in the controller. Which rows there are, and in which order, is `clew.analysis`'.
"""

from __future__ import annotations

import shlex
from typing import Any

from rich.console import Console
from rich.text import Text

from clew.cli.diff_order_text import conclude_order, name_order, place_name, print_order
from clew.cli.tables import (
    Column,
    escaped,
    format_count,
    format_counted,
    function_name,
    image_name,
    make_console,
    print_line,
    print_table,
)

__all__ = ["print_diff"]

Row = dict[str, Any]

_TITLES = {"a": "A", "b": "B"}
_MAX_IMAGES = 20
_TOTALS = {
    "instructions": "instructions",
    "block_executions": "block executions",
    "edge_executions": "edge executions",
    "blocks": "blocks",
    "edges": "edges",
}


def print_diff(content: Row) -> None:
    """Print what `TraceDiff.to_dict` says on stdout."""
    console = make_console()
    is_counted = content["compared"] == "counts"
    for side, title in _TITLES.items():
        told = content[side]
        print_line(console, f"{title}  {told['path']}  {shlex.join(told['command'])}")
    console.print()
    _print_totals(console, content)
    _print_numbers(console, content, is_counted)
    if content["images"]:
        console.print()
        _print_images(console, content["images"], is_counted)
    for side, title in _TITLES.items():
        _print_alone(console, content, side, title)
    if content["rows"]:
        _print_title(console, "in both, not as often" if is_counted else "in both, not the same code")
        _print_rows(console, content, is_counted)
    if content["order"]:
        print_order(console, content["order"])
    console.print()
    for note in content["notes"]:
        print_line(console, f"note: {note}")
    print_line(console, _conclude(content))


def _conclude(content: Row) -> str:
    what = "each block and each edge as often" if content["compared"] == "counts" else "the same blocks and edges"
    if content["equal"]:
        order = f", {name_order(content['order'])}" if content["order"] else ""
        return f"equal: A and B ran the same code, {what}{order}"
    lost = ", ".join(
        f"{format_counted(content['not_comparable'][side]['blocks'], 'blocks')} of {title}"
        for side, title in _TITLES.items()
        if content["not_comparable"][side]["blocks"]
    )
    rest = f"; not comparable, outside of images: {lost}" if lost else ""
    kinds = ("differ", "only_in_a", "only_in_b")
    if any(content[of][kind] for of in ("blocks", "edges") for kind in kinds):
        return f"A and B differ{rest}"
    if content["order"] and not rest:
        return conclude_order(content["order"])
    return f"no difference in what can be compared{rest}"


def _print_totals(console: Console, content: Row) -> None:
    totals = [content[side]["totals"] for side in _TITLES]
    modes = {content[side]["mode"] for side in _TITLES}
    rows = []
    for name, title in _TOTALS.items():
        a, b = (of_side[name] for of_side in totals)
        if name in ("blocks", "edges") or modes != {"coverage"}:
            is_known = name in ("blocks", "edges")
            cells = [
                format_count(number) if is_known or content[side]["mode"] != "coverage" else "-"
                for side, number in zip(_TITLES, (a, b), strict=True)
            ]
            rows.append([title, *cells, _format_ratio(a, b) if "-" not in cells else "-"])
    columns = [Column("total"), *(Column(title, is_number=True) for title in _TITLES.values())]
    print_table(console, [*columns, Column("ratio", is_number=True)], rows)


def _print_numbers(console: Console, content: Row, is_counted: bool) -> None:
    """How many blocks and edges are the same, and how many are not."""
    kinds = {"same": "same", "differ": "not as often", "only_in_a": "only in A", "only_in_b": "only in B"}
    if not is_counted:
        del kinds["differ"]
    columns = [Column("pieces"), *(Column(title, is_number=True) for title in kinds.values())]
    sides = [content["not_comparable"][side] for side in _TITLES]
    has_more = any(side["blocks"] for side in sides)
    if has_more:
        columns += [Column(f"not comparable in {title}", is_number=True) for title in _TITLES.values()]
    rows = []
    for name in ("blocks", "edges"):
        cells = [name, *(format_count(content[name][kind]) for kind in kinds)]
        rows.append(cells + ([format_count(side[name]) for side in sides] if has_more else []))
    console.print()
    print_table(console, columns, rows)


def _print_images(console: Console, images: list[Row], is_counted: bool) -> None:
    """Of each image what ran there, and what only in one."""
    columns = [
        *(Column(f"{'instructions' if is_counted else 'in code'} {title}", is_number=True) for title in "AB"),
        Column("blocks only A", is_number=True),
        Column("only B", is_number=True),
        *([Column("not as often", is_number=True)] if is_counted else []),
        Column("image", min_width=16, style="bold"),
    ]
    shown = sorted(images, key=lambda row: -max(row["a"]["instructions"], row["b"]["instructions"]))
    rows = []
    for row in shown[:_MAX_IMAGES]:
        a, b = (row[side]["image"] for side in _TITLES)
        name = "(outside of images)" if a is None and b is None else a or b
        if a is not None and b is not None and a != b:
            name = f"{a} | {b}"
        rows.append(
            [
                *(format_count(row[side]["instructions"]) for side in _TITLES),
                *(format_count(row[side]["only"]["blocks"]) for side in _TITLES),
                *([format_count(row["differ"])] if is_counted else []),
                name,
            ]
        )
    print_table(console, columns, rows)
    if len(shown) > _MAX_IMAGES:
        print_line(console, f"… {format_counted(len(shown) - _MAX_IMAGES, 'images')} more; see --json")


def _print_alone(console: Console, content: Row, side: str, title: str) -> None:
    rows = content[f"only_in_{side}"]
    if not rows:
        return
    what = "edges" if content["by"] == "edge" else "blocks"
    told = f"only in {title}: {format_counted(content[what][f'only_in_{side}'], what)}"
    if what == "blocks":
        instructions = sum(row[side]["only"]["instructions"] for row in content["images"])
        told += f", {format_counted(instructions, 'instructions')}"
    _print_title(console, told)
    is_counted = content["compared"] == "counts"
    if content["by"] == "edge":
        columns = [*_EDGE_COLUMNS]
        cells = [[row["kind"] or "?", place_name(row[side]["source"]), place_name(row[side]["target"])] for row in rows]
        if is_counted:
            columns.insert(0, Column("executions", is_number=True))
            for row, of_row in zip(rows, cells, strict=True):
                of_row.insert(0, format_count(row[side]["executions"]))
        _print_with_processes(console, content, columns, cells, rows)
        return
    columns = [
        Column("instructions", is_number=True),
        *([Column("executions", is_number=True)] if is_counted else []),
        *([Column("blocks", is_number=True)] if content["by"] == "function" else []),
        *_CODE_COLUMNS,
    ]
    cells = []
    for row in rows:
        of_side = row["only"] if content["by"] == "function" else row[side]
        counts = [of_side["instructions"], *([of_side["executions"]] if is_counted else [])]
        if content["by"] == "function":
            counts.append(of_side["blocks"])
        # Of a function that ran in both only a part is new.
        is_part = content["by"] == "function" and row["a"] is not None and row["b"] is not None
        cells.append([*map(format_count, counts), _name(row) + (" (part)" if is_part else ""), _offset(row[side])])
    _print_with_processes(console, content, columns, cells, rows)


def _print_rows(console: Console, content: Row, is_counted: bool) -> None:
    by, rows = content["by"], content["rows"]
    key, columns = ("executions", _EDGE_COLUMNS) if by == "edge" else ("instructions", _CODE_COLUMNS)
    numbers = [Column("difference", is_number=True)] if is_counted else []
    numbers += [Column(f"{key} {title}", is_number=True) for title in "AB"]
    numbers += [Column("ratio", is_number=True)] if is_counted else []
    cells = []
    for row in rows:
        a, b = row["a"][key], row["b"][key]
        counts = [format_count(row["difference"])] if is_counted else []
        counts += [format_count(a), format_count(b), *([_format_ratio(a, b)] if is_counted else [])]
        if by == "edge":
            cells.append([*counts, row["kind"] or "?", place_name(row["a"]["source"]), place_name(row["a"]["target"])])
        else:
            cells.append([*counts, _name(row), _offset(row["a"])])
    _print_with_processes(console, content, [*numbers, *columns], cells, rows)
    if is_counted and any(row["difference"] > abs(row["a"][key] - row["b"][key]) for row in rows):
        console.print()
        print_line(console, "difference: added up over the pieces of a function, whether A or B ran one more often")


def _print_with_processes(
    console: Console, content: Row, columns: list[Column], cells: list[list[str]], rows: list[Row]
) -> None:
    """Print a table; of several processes also of which ones the rows are."""
    if len(content["processes"]) > 1 and not content["merged"]:
        index = next(index for index, column in enumerate(columns) if not column.is_number)
        columns = [*columns[:index], Column("process", is_number=True), *columns[index:]]
        pids = [" | ".join(str(row[side].get("pid", "-")) for side in _TITLES if row[side]) for row in rows]
        cells = [[*of_row[:index], pid, *of_row[index:]] for of_row, pid in zip(cells, pids, strict=True)]
    print_table(console, columns, cells)


_CODE_COLUMNS = [Column("function", min_width=16, style="bold"), Column("at", min_width=8, style="dim")]
_EDGE_COLUMNS = [Column("kind"), Column("from", min_width=16), Column("to", min_width=16)]


def _print_title(console: Console, title: str) -> None:
    console.print()
    console.print(Text.assemble(escaped(title, "bold")), soft_wrap=True)
    console.print()


def _name(row: Row) -> str:
    """The function of a row, or the place of a block in it."""
    if "function" in row:
        return function_name(row["function"])
    offset = f"+{row['symbol_offset']:#x}" if row["symbol_offset"] else ""
    return "-" if row["symbol"] is None else f"{function_name(row['symbol'])}{offset}"


def _offset(side: Row) -> str:
    if side["image"] is None:
        return str(side.get("app_pc", "-"))
    return image_name(side["image"]) + ("" if side["offset"] is None else f"+{side['offset']}")


def _format_ratio(a: int, b: int) -> str:
    """How many times A's number B's is."""
    if not a:
        return "-" if not b else "only B"
    if not b:
        return "only A"
    ratio = b / a
    return (
        "=" if a == b else f"× {ratio:.2f}" if 0.01 <= ratio < 100 else f"× {ratio:,.0f}" if ratio >= 100 else "× 0.00"
    )
