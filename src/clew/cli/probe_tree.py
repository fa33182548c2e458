"""`clew probe tree`, `clew trace --tree`: calls within calls; and `clew probe diff`: how two trees differ.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from clew.cli.console import say
from clew.cli.probe_backend import open_session, takes_backend
from clew.cli.probe_run import ProbeRun, make_specs, what_is_probed
from clew.dataclass import dataclass
from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.export.probes.call_tree import CallPath
    from clew.export.probes.event_types import EventBatch

__all__ = ["TreeWish", "diff", "show_tree", "tree", "which_calls"]

_MILLISECOND_NS: Final = 1_000_000


@dataclass(frozen=True)
class TreeWish:
    """What of a tree is to be shown: `shows_all`, each call for itself; calls that took `min_duration` milliseconds, no
    deeper than `depth`, of function `within` and what that calls."""

    shows_all: bool = False
    min_duration: float = 0.0
    depth: int | None = None
    within: str | None = None


def which_calls(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a TreeWish, by its names."""
    for option in (
        click.option("--within", metavar="FUNCTION", help="Only calls of it, and what these call."),
        click.option("--depth", type=click.IntRange(1), metavar="N", help="Calls no deeper than that."),
        click.option(
            "--min-duration", type=click.FloatRange(0), default=0.0, metavar="MS", help="Calls that took as long."
        ),
        click.option("--all", "shows_all", is_flag=True, help="Each call for itself, not those of one path together."),
    ):
        command = option(command)
    return command


@click.command(name="tree")
@click.option(
    "--function", "functions", multiple=True, required=True, metavar="LOC", help="Calls of these; patterns, too."
)
@click.option("--filter", "condition", metavar="EXPR", help="Only calls that begin where this holds.")
@which_calls
@click.option("--json", "is_json", is_flag=True, help="An object a line.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="PATH", help="Write there.")
@takes_backend
@what_is_probed
def tree(
    functions: tuple[str, ...],
    condition: str | None,
    shows_all: bool,
    min_duration: float,
    depth: int | None,
    within: str | None,
    is_json: bool,
    output: Path | None,
    line: str | None,
    pid: str | None,
    duration: float | None,
    backend: str,
    required: str | None,
    words: tuple[str, ...],
) -> int:
    """Show which calls functions made within each other, and how long they took, in all and by themselves."""
    wish = TreeWish(shows_all, min_duration, depth, within)
    form = "json" if is_json else "text"
    return show_tree(functions, condition, wish, form, output, line, pid, duration, words, (backend, required))


def show_tree(
    functions: tuple[str, ...],
    condition: str | None,
    wish: TreeWish,
    form: str,
    output: Path | None,
    line: str | None,
    pid: str | None,
    duration: float | None,
    words: tuple[str, ...],
    backend: tuple[str, str | None],
    *,
    with_inlined: bool = False,
) -> int:
    """Follow calls of functions, and show their tree, as `text` or `json`, to `output` or to standard output.
    `backend`: which one, and what is required of it."""
    from clew.cli.probe_output import open_text
    from clew.export.probes.call_tree import CallPaths, CallTrees, TreeChoice
    from clew.export.probes.call_tree_text import paths_json, paths_text, trees_json, trees_text

    choice = TreeChoice(int(wish.min_duration * _MILLISECOND_NS), wish.depth, wish.within)
    trees, paths = CallTrees(choice), CallPaths(choice)
    follower: CallTrees | CallPaths = trees if wish.shows_all else paths
    n_lost = 0

    def take(batch: EventBatch) -> None:
        nonlocal n_lost
        follower.write(batch)
        n_lost += sum(one.count for one in batch.losses)

    with open_text(output) as write:
        session = open_session(make_specs((), functions, (), (), condition, with_inlined=with_inlined), *backend)
        try:
            status = ProbeRun(session, line, pid, words).follow(duration, take)
        finally:
            session.close()
            for text in session.left:
                say(text)
        follower.close()
        if n_lost:
            say(f"{n_lost} entries and returns were lost: calls around them are not as they were")
        if wish.shows_all:
            write(trees_json(trees) if form == "json" else trees_text(trees))
        else:
            write(paths_json(paths) if form == "json" else paths_text(paths))
    return status


@click.command(name="diff")
@click.option("--json", "is_json", is_flag=True, help="An object a line.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="PATH", help="Write there.")
@click.argument("path_a", metavar="A", type=click.Path(path_type=Path))
@click.argument("path_b", metavar="B", type=click.Path(path_type=Path))
def diff(path_a: Path, path_b: Path, is_json: bool, output: Path | None) -> None:
    """Show how the tree of calls B differs from A: calls, times in all and by themselves, on each path.

    A and B are files that `clew probe tree --json -o FILE` wrote.
    """
    from clew.cli.probe_output import open_text
    from clew.export.probes.call_paths_diff import diff_paths
    from clew.export.probes.call_tree_text import changes_json, changes_text

    change = diff_paths(_read_tree(path_a), _read_tree(path_b))
    with open_text(output) as write:
        write(changes_json(change) if is_json else changes_text(change))


def _read_tree(path: Path) -> CallPath:
    from clew.export.probes.call_paths_file import read_paths

    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            return read_paths(lines)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path}: {error}; `clew probe tree --json -o FILE` writes what can be compared") from error
