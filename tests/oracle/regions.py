"""What mode region is to tag of a single-stepped run, by the algorithm as it is written down, and what a trace has.

Runs on the machine that tests. Knows nothing of how clew does it: here levels have no end, and executions are counted
one by one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from clew.store.trace import Trace
from tests.oracle.truth import Instruction, Truth

__all__ = ["Activity", "Execution", "Happening", "Tag", "agree", "iter_executions", "iter_tags", "read_tags"]


@dataclass(frozen=True)
class Execution:
    """An execution of a block, by its address. `target` is where it went, None where it was stopped on the way.

    Of one that is not `is_begun_only` at least one instruction was executed. `is_told` says whether the target of a
    counted execution is always known: that of a return is not, nor those of code that was cut.
    """

    block: int
    target: int | None
    is_begun_only: bool = False
    is_told: bool = True


@dataclass(frozen=True)
class Happening:
    """A system call, a signal or a fault."""

    kind: str


@dataclass(frozen=True)
class Tag:
    """One tag, with addresses for blocks. `targets` are counts by target, sorted; not all if not `is_told`."""

    kind: str
    block: int | None = None
    target: int | None = None
    executions: int | None = None
    targets: tuple[tuple[int, int], ...] = ()
    is_told: bool = True


@dataclass
class Activity:
    """Levels of blocks and of the thread, by the rules."""

    levels: dict[int, int] = field(default_factory=dict)
    thread: int = 0

    def execute(self, block: int) -> None:
        """Take note of an execution."""
        level = self.levels.get(block, -1) + 1
        if level == self.thread + 1 or level < self.thread:
            self.thread = level
        elif level > self.thread + 1:
            level = self.thread
        self.levels[block] = level


def iter_tags(run: Iterable[Execution | Happening], limit: int = 10) -> Iterator[Tag]:
    """The tags of a thread's executions and of what happened to it in between."""
    activity = Activity()
    counts: dict[int, Counter[int]] = {}
    untold: set[int] = set()

    def leave() -> Iterator[Tag]:
        for block, counted in counts.items():
            targets = tuple(sorted(counted.items()))
            yield Tag("counts", block, executions=counted.total(), targets=targets, is_told=block not in untold)
        counts.clear()
        yield Tag("left_busy")

    for event in run:
        if isinstance(event, Happening):
            yield Tag(event.kind)
            continue
        was_busy = activity.thread >= limit
        activity.execute(event.block)
        if activity.thread >= limit:
            if event.block not in counts:
                yield Tag("became_busy", event.block)
                counts[event.block] = Counter()
            if not event.is_told:
                untold.add(event.block)
            if event.target is not None:
                counts[event.block][event.target] += 1
            continue
        if was_busy:
            yield from leave()
        if not event.is_begun_only:
            yield Tag("executed", event.block, event.target)
    if activity.thread >= limit:
        yield from leave()


MAX_BYTES, MAX_INSTRUCTIONS = 2048, 256
"""Longer code is translated in pieces, and the targets of its counted executions are not known."""
_PREFIXES = bytes([0x66, 0x9B, *range(0x40, 0x50)])
_FLOAT_STATE = (b"\xd9", b"\xdd", b"\x0f\xae", b"\x0f\xc7")
"""Instructions among which are those that save where the last x87 instruction was: so is code with these."""


def iter_executions(truth: Truth) -> Iterator[Execution | Happening]:
    """What a single-stepped run executed: a block lasts from where it is entered to the next branch."""
    path = list(truth.path)
    block: list[Instruction] = []
    for at, (here, has_run, how) in enumerate(path):
        following = path[at + 1][0].pc if at + 1 < len(path) else None
        if has_run:
            block.append(here)
            if here.flow != "none":
                yield _execution(block, following)
                block = []
                if here.flow == "syscall":
                    yield Happening("syscall")
            continue
        is_signal = how == "signal"
        if block and is_signal:
            raise ValueError(f"{here.pc:#x}: a signal in the middle of a block, which clew delivers at its end")
        if block:
            yield _execution(block, None)
        elif not is_signal:
            yield Execution(here.pc, None, is_begun_only=True)
        block = []
        yield Happening("signal" if is_signal else "fault")


def _execution(block: list[Instruction], target: int | None) -> Execution:
    first, last = block[0], block[-1]
    is_cut = last.end - first.pc > MAX_BYTES or len(block) > MAX_INSTRUCTIONS
    is_cut |= any(found.code.lstrip(_PREFIXES).startswith(_FLOAT_STATE) for found in block)
    return Execution(first.pc, target, is_told=last.flow != "return" and not is_cut)


def agree(wanted: Tag, found: Tag) -> bool:
    """Whether a tag is as it is to be."""
    if wanted.is_told:
        return wanted == found
    known = dict(wanted.targets)
    return replace(wanted, targets=found.targets, is_told=True) == found and all(
        n <= known.get(target, 0) for target, n in found.targets
    )


def read_tags(trace: Trace, tid: int | None = None) -> list[Tag]:
    """The tags of a trace's thread, by default its only one."""
    starts = {row["block_id"]: row["app_pc"] for row in trace.blocks.select(["block_id", "app_pc"]).to_pylist()}
    tids = {row["tid"] for row in trace.threads.to_pylist()}
    if tid is None:
        (tid,) = tids
    tags: list[Tag] = []
    targets: dict[int, list[tuple[int, int]]] = defaultdict(list)
    totals: Counter[int] = Counter()
    for row in trace.tags.to_pylist():
        if row["tid"] != tid:
            continue
        block, target = starts.get(row["block_id"]), starts.get(row["target_block_id"])
        if row["kind"] == "counts":
            totals[row["tag"]] += row["executions"]
            if target is not None:
                targets[row["tag"]].append((target, row["executions"]))
        if row["tag"] == len(tags):
            tags.append(Tag(row["kind"], block, None if row["kind"] == "counts" else target))
        assert row["tag"] == len(tags) - 1, row
    return [
        Tag("counts", tag.block, executions=totals[number], targets=tuple(sorted(targets[number])))
        if tag.kind == "counts"
        else tag
        for number, tag in enumerate(tags)
    ]
