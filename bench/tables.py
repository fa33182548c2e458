"""A result as Markdown tables.

Pure: takes what a result's JSON holds, gives lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.summary import is_same_work

Row = dict[str, Any]
Groups = dict[str, dict[str, dict[str, Any]]]


def format_ratios(rows: Sequence[Row], groups: Groups, modes: Sequence[str]) -> list[str]:
    """Clew's modes: ratios as median (least to greatest); of `true` CPU time."""
    lines = [
        "| program | size | native s | " + " | ".join(f"{mode}: ratio (least to greatest)" for mode in modes) + " |",
        "| --- | --- | --- |" + " --- |" * len(modes),
    ]
    lines += [_format_row(row, [format_cell(row["modes"][mode], with_spread=True) for mode in modes]) for row in rows]
    for size, means in groups.items():
        if any(mode in means for mode in modes):
            cells = [_format_number(means.get(mode, {}).get("mean")) for mode in modes]
            lines.append(f"| geometric mean | {size} | | {' | '.join(cells)} |")
    return lines


def format_peers(rows: Sequence[Row], groups: Groups, names: Sequence[str]) -> list[str]:
    """All tools side by side: median ratios, and what failed with the reason.

    A peer's mean is over the programs of which it does the same work as clew; below it, what `counts` needs for those.
    """
    lines = [
        "| program | size | native s | " + " | ".join(names) + " |",
        "| --- | --- | --- |" + " --- |" * len(names),
    ]
    lines += [_format_row(row, [format_cell(row["modes"][name], with_spread=False) for name in names]) for row in rows]
    for size, means in groups.items():
        cells = [_format_mean(means.get(name)) for name in names]
        lines.append(f"| geometric mean | {size} | | {' | '.join(cells)} |")
        if any("counts_mean" in means.get(name, {}) for name in names):
            cells = [_format_number(means.get(name, {}).get("counts_mean"), missing="") for name in names]
            lines.append(f"| `counts` on the same programs | {size} | | {' | '.join(cells)} |")
    if any(
        "share" in found and "ratio" in found and not is_same_work(found)
        for row in rows
        for found in row["modes"].values()
    ):
        lines += ["", "(N %): the tool did no more than that of the work, by what clew counted; it is not in the mean."]
    return lines


def format_engine(starts: dict[str, Any], translation: Sequence[Row]) -> list[str]:
    """Time to the first instruction, recording `true`, translation speed."""
    lines = ["| what | native | clew, median (least to greatest) |", "| --- | --- | --- |"]
    labels = {
        "first_instruction_ms": "to the first instruction, wall time",
        "true_wall_ms": "`true`, wall time",
        "true_cpu_ms": "`true`, CPU time",
    }
    if starts:
        for key, label in labels.items():
            native, counts = starts["native"][key], starts["counts"][key]
            lines.append(
                f"| {label} | {native['median']:.1f} ms "
                f"| {counts['median']:.0f} ms ({counts['least']:.0f} to {counts['greatest']:.0f}) |"
            )
    for row in translation:
        each = row["ns_per_instruction"]
        # The fastest takes the least time for each.
        slow, median, fast = (_format_speed(each[key]) for key in ("greatest", "median", "least"))
        lines.append(
            f"| translating {row['name']}: {row['instructions_translated']:,} instructions "
            f"| {row['native_seconds']['median'] * 1000:.0f} ms | {median} million/s ({slow} to {fast}) |"
        )
    return lines


def format_cell(found: dict[str, Any], *, with_spread: bool) -> str:
    """One tool's cell: a ratio, the CPU time where there is none, or a cross with the reason."""
    if found.get("failure"):
        # How much slower at least is no failure of the peer's output.
        return str(found["failure"]) if found["failure"].startswith(">") else f"✗ {found['failure']}"
    if "ratio" not in found:
        return f"{found['cpu_seconds']['median'] * 1000:.0f} ms" + (" of CPU time" if with_spread else "")
    ratio = found["ratio"]
    median = _format_number(ratio["median"])
    if not is_same_work(found):
        return f"{median} ({_format_share(found['share'])})"
    return f"{median} ({ratio['least']:.2f} to {ratio['greatest']:.2f})" if with_spread else median


def _format_row(row: Row, cells: Sequence[str]) -> str:
    return f"| {row['name']} | {row['size']} | {row['native_cpu_seconds']['median']:.3f} | {' | '.join(cells)} |"


def _format_number(value: float | None, missing: str = "-") -> str:
    if value is None:
        return missing
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _format_mean(group: dict[str, Any] | None) -> str:
    if group is None:
        return "-"
    over = "" if group["programs"] == group["of"] else f" ({group['programs']} of {group['of']} programs)"
    return _format_number(group["mean"]) + over


def _format_share(share: float) -> str:
    return "< 1 %" if share < 0.01 else f"{share * 100:.0f} %"


def _format_speed(ns_per_instruction: float) -> str:
    return f"{1000 / ns_per_instruction:.2f}" if ns_per_instruction > 0 else "-"


def format_cells(cells: Sequence[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(cells)} |"
