"""Where the threads of two traces part, and where they meet again, for people.

Runs in the controller. What is told, and of which threads, is `clew.analysis`'.
"""

from __future__ import annotations

from typing import Any, Final

from rich.console import Console
from rich.text import Text

from clew.cli.tables import escaped, format_count, format_counted, function_name, image_name, print_line

__all__ = ["conclude_order", "name_order", "place_name", "print_order"]

Row = dict[str, Any]

_TITLES: Final = {"a": "A", "b": "B"}
_MAX_CALLS: Final = 6
_DIFFERENT: Final = ("a_ends", "b_ends", "not_met")


def print_order(console: Console, order: list[Row]) -> None:
    """Print what `TraceDiff.order` says: a paragraph for each parting, a line where there is none."""
    same = [threads for threads in order if _is_same(threads)]
    if len(order) == 1 and same:
        _print_title(console, "order")
        start = _name_start(same[0])
        print_line(console, f"{start + ': ' if start else ''}the same up to the end, {_count_executions(same)}")
        return
    if same:
        _print_title(console, "order")
        print_line(
            console, f"{format_counted(len(same), 'threads')} ran the same in the same order: {_count_executions(same)}"
        )
    for threads in order:
        if not _is_same(threads):
            _print_threads(console, threads)


def conclude_order(order: list[Row]) -> str:
    """What to say of two traces that differ in their order at most."""
    if any(threads["partings"] or threads["end"] in _DIFFERENT for threads in order):
        return "A and B ran the same code, each block and each edge as often, but not in the same order"
    return "A and B ran the same code, each block and each edge as often; their order could not be compared to the end"


def name_order(order: list[Row]) -> str:
    """What is the same of two traces whose threads do not part."""
    return f"in the same order {_name_start(order[0])}".rstrip()


def place_name(row: Row | None) -> str:
    """A place in few words: symbol, or image and offset."""
    if row is None:
        return "-"
    if row["symbol"] is not None:
        offset = f"+{row['symbol_offset']:#x}" if row["symbol_offset"] else ""
        return f"{function_name(row['symbol'])}{offset}"
    if row["image"] is None:
        return str(row["app_pc"])
    return image_name(row["image"]) + ("" if row["offset"] is None else f"+{row['offset']}")


def _is_same(threads: Row) -> bool:
    return threads["end"] == "together" and not threads["partings"]


def _print_title(console: Console, title: str) -> None:
    console.print()
    console.print(Text.assemble(escaped(title, "bold")), soft_wrap=True)
    console.print()


def _name_start(threads: Row) -> str:
    """From where on it was compared, and without what."""
    start = [] if threads["start"] in (None, "0") else [f"from {threads['start']} on"]
    return ", ".join([*start, *(["without the C library"] if threads["without_c_library"] else [])])


def _count_executions(same: list[Row]) -> str:
    ran = (threads["a"]["end"]["execution"] - threads["a"]["start"]["execution"] for threads in same)
    return format_counted(sum(ran), "block executions")


def _print_threads(console: Console, threads: Row) -> None:
    names = " | ".join("-" if threads[side] is None else str(threads[side]["tid"]) for side in _TITLES)
    start = _name_start(threads)
    _print_title(console, f"order of thread {names}" + (f", {start}" if start else ""))
    for number, parting in enumerate(threads["partings"], 1):
        _print_parting(console, number, parting)
    print_line(console, _name_end(threads))


def _print_parting(console: Console, number: int, parting: Row) -> None:
    at = _numbers([parting[side]["at"] for side in _TITLES])
    last = parting["last"]
    behind = "part at once" if last is None else f"part behind {_place_with_image(last)}"
    print_line(console, f"{number}. {behind}, at instruction {at}")
    if parting["calls"]:
        calls = [_place_with_line(call) for call in parting["calls"][:_MAX_CALLS]]
        more = ["…"] if parting["n_calls"] > len(calls) else []
        print_line(console, f"   called from {', '.join([*calls, *more])}")
    for side, title in _TITLES.items():
        print_line(console, f"   {title}  {_name_way(parting[side])}")
    if parting["met"] is not None:
        met = _numbers([parting[side]["met"] for side in _TITLES])
        print_line(console, f"   meet at {_place_with_image(parting['met'])}, at instruction {met}")
    console.print()


def _name_way(side: Row) -> str:
    """What one ran behind a parting."""
    ran = side["ran"]
    if ran is not None and not ran["execution"] and not ran["instruction"]:
        return "goes straight on"
    places = [_place_with_line(place) for place in side["next"]]
    told = " → ".join([*places, "…"])
    return told if ran is None else f"{told}  ({format_counted(ran['instruction'], 'instructions')})"


def _name_end(threads: Row) -> str:
    """How the comparison ended."""
    end, last = threads["end"], threads["last"]
    if end is None:
        for side, other in (("a", "B"), ("b", "A")):
            if threads[side] is None:
                return f"only in {other}"
        return "not compared: one of them did not come to where both were to be begun, or not so often"
    instructions = {side: format_count(threads[side]["end"]["instruction"]) for side in _TITLES}
    behind = "" if last is None else f" behind {_place_with_image(last)}"
    told = {
        "together": f"the same from there to the end: {' | '.join(instructions.values())} instructions",
        "a_ends": f"A ends{behind}, after {instructions['a']} instructions, and B goes on",
        "b_ends": f"B ends{behind}, after {instructions['b']} instructions, and A goes on",
        "not_met": "they do not meet again, or further on than was looked",
        "limit": "they part again: say --partings N for more",
        "lost_in_a": f"what A ran after {instructions['a']} instructions was lost; not compared from there on",
        "lost_in_b": f"what B ran after {instructions['b']} instructions was lost; not compared from there on",
    }
    return told[end]


def _place_with_image(row: Row) -> str:
    name = place_name(row)
    more = [] if row["line"] is None else [_short_line(row["line"])]
    if row["symbol"] is not None and row["image"] is not None and row["offset"] is not None:
        more.insert(0, f"{image_name(row['image'])}+{row['offset']}")
    return f"{name} ({', '.join(more)})" if more else name


def _place_with_line(row: Row) -> str:
    return place_name(row) + ("" if row["line"] is None else f" ({_short_line(row['line'])})")


def _short_line(line: str) -> str:
    """A line of a file without the file's folders."""
    return line.rsplit("/", 1)[-1]


def _numbers(sides: list[Row]) -> str:
    """Numbers of an instruction in A and in B; once if it is the same."""
    a, b = (format_count(side["instruction"]) for side in sides)
    return a if a == b else f"{a} | {b}"
