"""A result as a picture: `python -m bench.plot RESULT.json [PICTURE.svg]`, by default beside the result.

One group per program, one dot per tool at its median ratio on a logarithmic axis, a line from the least to the
greatest; hollow where the tool did only a part of the work. What was cut off is an arrow at the right edge, what failed
a cross there; each says why when pointed at.
Plain SVG, written here. Knows nothing of how a result came about.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from bench.summary import is_same_work

# Okabe and Ito's colours, which most colour-blind people tell apart; the shapes tell them apart in print.
_STYLES = (
    ("#0072b2", "circle"),
    ("#56b4e9", "circle"),
    ("#d55e00", "square"),
    ("#e69f00", "square"),
    ("#cc79a7", "square"),
    ("#009e73", "diamond"),
    ("#7bc8a4", "diamond"),
    ("#555555", "triangle"),
    ("#000000", "triangle"),
)
_WIDTH = 980
_LEFT, _RIGHT = 110, 60  # for the programs' names; for arrows and crosses
_TOOL_HEIGHT, _GROUP_GAP = 5.0, 7.0
_LEGEND_COLUMNS = 5
_FONT = 'font-family="DejaVu Sans, Helvetica, sans-serif"'


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis of ratios."""

    least: float
    greatest: float

    def place(self, ratio: float) -> float:
        """Horizontal position of a ratio, in the picture's units; what is beyond an end is put there."""
        share = math.log(min(max(ratio, self.least), self.greatest) / self.least) / math.log(self.greatest / self.least)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def ticks(self) -> list[float]:
        """Round numbers within the axis: 1, 2 and 5 times powers of ten."""
        powers = range(math.floor(math.log10(self.least)), math.ceil(math.log10(self.greatest)) + 1)
        found = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
        return [tick for tick in found if self.least <= tick * 1.0001 and tick <= self.greatest * 1.0001]


def find_axis(rows: Sequence[dict[str, Any]]) -> Axis:
    """From a little below 1, or from the least ratio if that is below, to the greatest; never empty.

    What is below a half is noise of the subtraction, and put at the edge.
    """
    ends = [
        found["ratio"][end]
        for row in rows
        for found in row["modes"].values()
        if "ratio" in found
        for end in ("least", "greatest")
    ]
    positive = [end for end in ends if end > 0] or [1.0]
    return Axis(min(0.9, max(min(positive) * 0.95, 0.5)), max(2.0, max(positive) * 1.05))


def draw(result: dict[str, Any]) -> str:
    """The picture of a result, as SVG text."""
    panels = [
        (size, [row for row in result["rows"] if row["size"] == size and row["name"] != "true"])
        for size in ("long", "short", "start")
    ]
    panels = [(size, rows) for size, rows in panels if rows]
    names = list(dict.fromkeys(name for _, rows in panels for row in rows for name in row["modes"]))
    styles = {name: _STYLES[index % len(_STYLES)] for index, name in enumerate(names)}
    axis = find_axis([row for _, rows in panels for row in rows])
    body, top = _draw_legend(styles)
    for size, rows in panels:
        lines, top = _draw_panel(size, rows, styles, axis, top)
        body += lines
    height = round(top + 10)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}">',
        '<rect width="100%" height="100%" fill="white"/>',
    )
    return "\n".join((*head, *body, "</svg>")) + "\n"


def _draw_legend(styles: dict[str, tuple[str, str]]) -> tuple[list[str], float]:
    """Lines, and where the next thing starts."""
    lines = [
        _text(
            12,
            20,
            "CPU time as a ratio to native: median, least to greatest; hollow: of a part of the work only",
            size=14,
        )
    ]
    step = (_WIDTH - 24) / _LEGEND_COLUMNS
    for index, (name, (colour, shape)) in enumerate(styles.items()):
        row, column = divmod(index, _LEGEND_COLUMNS)
        x, y = 20 + column * step, 42 + row * 18
        lines += [_mark(x, y, colour, shape, name), _text(x + 10, y + 4, name)]
    rows = math.ceil(len(styles) / _LEGEND_COLUMNS)
    return lines, 42.0 + rows * 18


def _draw_panel(
    size: str, rows: Sequence[dict[str, Any]], styles: dict[str, tuple[str, str]], axis: Axis, top: float
) -> tuple[list[str], float]:
    """The programs of one size, below a heading; and where the next panel starts."""
    group_height = max(len(styles) * _TOOL_HEIGHT, 12.0) + _GROUP_GAP
    first, last = top + 34, top + 34 + group_height * len(rows)
    lines = [_text(12, top + 14, f"{size} programs", size=13)]
    for index in range(0, len(rows), 2):
        y = first + index * group_height
        lines.append(f'<rect x="8" y="{y:.1f}" width="{_WIDTH - 16}" height="{group_height:.1f}" fill="#f4f4f4"/>')
    for tick in axis.ticks():
        x = axis.place(tick)
        stroke = "#888" if tick == 1 else "#ddd"
        lines.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{first:.1f}" y2="{last:.1f}" stroke="{stroke}"/>')
        lines.append(_text(x, first - 5, f"{tick:g}", anchor="middle", size=10))
    lines.append(_text(_WIDTH - 12, first - 5, "cut, failed", anchor="end", size=10))
    for index, row in enumerate(rows):
        y = first + index * group_height
        lines.append(_text(_LEFT - 10, y + group_height / 2 + 4, row["name"], anchor="end"))
        inner = (group_height - len(styles) * _TOOL_HEIGHT) / 2
        for turn, (name, style) in enumerate(styles.items()):
            if name in row["modes"]:
                middle = y + inner + (turn + 0.5) * _TOOL_HEIGHT
                lines += _draw_tool(name, row["modes"][name], style, axis, middle)
    return lines, last + 14


def _draw_tool(name: str, found: dict[str, Any], style: tuple[str, str], axis: Axis, y: float) -> list[str]:
    colour, shape = style
    failure = found.get("failure", "")
    edge = _WIDTH - _RIGHT + 16.0
    if failure.startswith(">"):
        return [_path(f"M{edge} {y - 3}l8 3l-8 3z", f'fill="{colour}"', f"{name}: {failure}")]
    if failure:
        # Crosses of neighbours would run into one another in one column.
        x = edge + (18 if int(y / _TOOL_HEIGHT) % 2 else 28)
        style_of_line = f'stroke="{colour}" stroke-width="1.6" fill="none"'
        return [_path(f"M{x - 3} {y - 3}l6 6m0 -6l-6 6", style_of_line, f"{name}: {failure}")]
    if "ratio" not in found:
        return []
    ratio = found["ratio"]
    x1, x2 = axis.place(ratio["least"]), axis.place(ratio["greatest"])
    label = f"{name}: {ratio['median']:.2f} ({ratio['least']:.2f} to {ratio['greatest']:.2f})"
    is_whole = is_same_work(found)
    if not is_whole:
        label += f", of {found['share']:.0%} of the work"
    return [
        f'<line x1="{x1:.1f}" x2="{x2:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}" stroke-width="1.4"/>',
        _mark(axis.place(ratio["median"]), y, colour, shape, label, is_hollow=not is_whole),
    ]


def _mark(x: float, y: float, colour: str, shape: str, label: str, *, is_hollow: bool = False) -> str:
    outlines = {
        "circle": f"M{x - 3:.1f} {y:.1f}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z",
        "square": f"M{x - 2.7:.1f} {y - 2.7:.1f}h5.4v5.4h-5.4z",
        "diamond": f"M{x:.1f} {y - 3.6:.1f}l3.6 3.6l-3.6 3.6l-3.6 -3.6z",
        "triangle": f"M{x:.1f} {y - 3.4:.1f}l3.4 6h-6.8z",
    }
    style = f'fill="white" stroke="{colour}" stroke-width="1.2"' if is_hollow else f'fill="{colour}"'
    return _path(outlines[shape], style, label)


def _path(outline: str, style: str, label: str) -> str:
    return f'<path d="{outline}" {style}><title>{escape(label)}</title></path>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor={quoteattr(anchor)}'
    return f'<text {place} {_FONT} font-size="{size}" fill="#222">{escape(text)}</text>'


def main(words: list[str]) -> int:
    if len(words) not in (1, 2):
        raise SystemExit("usage: python -m bench.plot RESULT.json [PICTURE.svg]")
    source = Path(words[0])
    target = Path(words[1]) if len(words) == 2 else source.with_suffix(".svg")
    target.write_text(draw(json.loads(source.read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
