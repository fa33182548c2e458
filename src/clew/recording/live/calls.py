"""How often functions were called in a process that goes on, out of its counters and the records of its code so far.

Runs in the controller. Of code only that is read which says what counts calls, and where these lead: neither blocks nor
edges are worked out for it. What comes out is what the trace would say if the process ended here.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.protocol._generated import (
    DYNAMIC_EDGE_RECORD,
    FRAGMENT_RECORD,
    LINK_RECORD,
    NO_INDEX,
    EdgeKind,
    ExitKind,
    Mode,
    RecordKind,
)
from clew.recording.assembly.arrays.keys import sorted_unique
from clew.recording.assembly.arrays.rows import NumberSet, Rows, add_up, is_in
from clew.recording.assembly.arrays.tallies import Tally
from clew.recording.assembly.flow.flow import COUNTER_LIMIT
from clew.recording.assembly.flow.leaders import Leaders
from clew.recording.assembly.images.images import ImageFiles, ImageMap, build_image_map
from clew.recording.assembly.records.records import Fragments, parse_fragment_heads, parse_records
from clew.recording.assembly.tables.tables import clean_text, name_blocks
from clew.recording.live.process import LiveProcess
from clew.recording.raw.process import RawImage

__all__ = ["CallCounts", "CalledCode"]

Array = npt.NDArray[Any]

_TSC: Final = slice(24, 32)
"""Where all records of code have their time stamp."""


@dataclass(frozen=True)
class _CallRecords:
    """Records of code, without what only blocks need. `images` has shape (n, 64), continuations behind what they
    continue."""

    fragments: Array
    edges: Array
    links: Array
    images: Array

    @classmethod
    def find(cls, records: npt.NDArray[np.uint8]) -> _CallRecords:
        """Those among `records`, shape (n, 64)."""
        kind = _kinds(records)

        def select(one: RecordKind, dtype: np.dtype[np.void]) -> Array:
            selected: Array = records[kind == one].reshape(-1).view(dtype)
            return selected

        owner = _owners(kind)
        return cls(
            fragments=select(RecordKind.FRAGMENT, FRAGMENT_RECORD),
            edges=select(RecordKind.DYNAMIC_EDGE, DYNAMIC_EDGE_RECORD),
            links=select(RecordKind.LINK, LINK_RECORD),
            images=records[np.isin(kind[owner], (RecordKind.IMAGE, RecordKind.UNMAP))],
        )

    def before(self, tsc: int) -> _CallRecords:
        """What was told before a time stamp: a child that was forked then has it, too."""
        stamps = self.images[:, _TSC].copy().view("<u8")[:, 0]
        return _CallRecords(
            self.fragments[self.fragments["tsc"] < tsc],
            self.edges[self.edges["tsc"] < tsc],
            self.links[self.links["tsc"] < tsc],
            self.images[stamps[_owners(_kinds(self.images))] < tsc],
        )

    def join(self, later: _CallRecords) -> _CallRecords:
        """These and then others."""
        return _CallRecords(
            *(np.concatenate(both) for both in zip(vars(self).values(), vars(later).values(), strict=True))
        )


def _kinds(records: npt.NDArray[np.uint8]) -> Array:
    kinds: Array = records[:, :2].copy().view("<u2")[:, 0]
    return kinds


def _owners(kind: Array) -> Array:
    """By record the one that it continues, or itself."""
    owners: Array = np.maximum.accumulate(np.where(kind != RecordKind.CONTINUATION, np.arange(len(kind)), 0))
    return owners


class CalledCode:
    """What counts calls: by row `counter`, its index, `target_pc`, where they lead, and `tsc`, when that was told.

    `is_exact`: nothing is counted that is not to be recorded. Else more has to be known than this.
    """

    def __init__(self, fragment_rows: Array, edge_rows: Array, links: Array) -> None:
        fragments = parse_fragment_heads(fragment_rows)
        self.is_exact = not bool((fragments.is_left_out & ~fragments.is_excluded).any())
        direct = _find_direct(fragments)
        through = edge_rows[np.isin(edge_rows["edge_kind"], (EdgeKind.CALL, EdgeKind.INDIRECT_CALL))]
        through = through[through["counter_index"] != NO_INDEX]
        through = through[Rows(fragments.fragment_id).find_first(through["source_fragment_id"].astype(np.int64)) >= 0]
        self.counter: Array = np.concatenate(
            [fragments.counter_index[direct], through["counter_index"].astype(np.int64)]
        ).astype(np.int64)
        self.target_pc: Array = np.concatenate([fragments.target_pc[direct], through["target_pc"]])
        self.tsc: Array = np.concatenate([fragments.tsc[direct], through["tsc"]])
        if fragments.is_left_out.any():
            self._leave_out(fragments)
        self._by_counter = Rows(self.counter)
        self._leaders = Leaders(fragments, links)
        self._asked = NumberSet(self._leaders.find_causes(self.counter))

    def _leave_out(self, fragments: Fragments) -> None:
        """Functions of which nothing was to be recorded are not told of, as in rankings of a trace."""
        left, recorded = (
            sorted_unique(fragments.app_pc[chosen]) for chosen in (fragments.is_left_out, ~fragments.is_left_out)
        )
        kept = ~is_in(self.target_pc, left) | is_in(self.target_pc, recorded)
        self.counter, self.target_pc, self.tsc = self.counter[kept], self.target_pc[kept], self.tsc[kept]

    def count(self, index: Array, value: Array) -> Array:
        """By row how many calls there were (i64), where counters have these values: rising indices."""
        chosen = self._asked.holds(index)
        # A call has one way only: nothing is to be separated as of conditional branches.
        complete = self._leaders.apply(Tally.join([(index[chosen], value[chosen])]))
        row, at = self._by_counter.find(complete.number.astype(np.int64))
        calls = np.zeros(len(self.counter), np.int64)
        np.add.at(calls, row, complete.count[at].astype(np.int64))
        return calls


def _find_direct(fragments: Fragments) -> Array:
    is_call = (fragments.exit_kind == ExitKind.CALL) & (fragments.counter_index >= 0)
    return np.flatnonzero(is_call & (~fragments.is_excluded | fragments.counts_first))


class CallCounts:
    """Of one process; `files` are read for the names of what is called."""

    def __init__(self, process: LiveProcess, files: ImageFiles) -> None:
        self._process, self._files = process, files
        self._version: tuple[int, ...] = ()
        self.code: CalledCode | None = None
        """What was read of its code last."""
        self._names: list[str] = []
        self._name_of_row = np.zeros(0, np.int64)

    def count(self) -> Counter[str] | None:
        """How often each function was called so far, by `IMAGE!FUNCTION`; None: more has to be known for that.

        Raises ValueError, KeyError for what can't be.
        """
        process = self._process
        if process.start is None:
            return Counter()
        if process.mode not in (Mode.COUNTS, Mode.FULL) or process.trouble:
            return None
        line = [process]
        while (parent := line[-1].parent) is not None:
            line.append(parent)
        if line[-1].lacks_parent:
            return None
        version = tuple(one.records_version for one in line)
        if version != self._version or self.code is None:
            self._read(line)
            self._version = version
        code = self.code
        assert code is not None
        if not code.is_exact:
            return None
        threads = [thread.counters for thread in process.threads]
        index, value = add_up(
            np.concatenate([np.zeros(0, np.int64), *(one.index.astype(np.int64) for one in threads)]),
            np.concatenate([np.zeros(0, np.int64), *(_sound(one.value) for one in threads)]),
        )
        calls = np.zeros(len(self._names), np.int64)
        np.add.at(calls, self._name_of_row, code.count(index[value > 0], value[value > 0]))
        return Counter({self._names[at]: int(calls[at]) for at in np.flatnonzero(calls > 0).tolist()})

    def _read(self, line: list[LiveProcess]) -> None:
        """Read the code of the first of `line`; each is a fork of the next."""
        records = _CallRecords.find(line[-1].own_records())
        for parent, child in zip(reversed(line), reversed(line[:-1]), strict=False):
            assert parent is child.parent
            records = records.before(child.fork_tsc).join(_CallRecords.find(child.own_records()))
        self.code = code = CalledCode(records.fragments, records.edges, records.links)
        self._name(code, records.images, line[-1].initial_images)

    def _name(self, code: CalledCode, image_records: Array, initial: list[RawImage]) -> None:
        parsed = parse_records(image_records, 0)
        images = build_image_map(initial, parsed.mappings, parsed.unmaps, self._files)
        order = np.argsort(code.target_pc, kind="stable")
        pc = code.target_pc[order]
        image = images.locate(pc, code.tsc[order])
        base = np.array([row.base for row in images.images] + [0], np.uint64)
        image = np.where(pc >= base[image], image, -1)
        key = np.stack([image, pc.view(np.int64)])
        is_first = np.ones(len(pc), bool)
        is_first[1:] = (key[:, 1:] != key[:, :-1]).any(axis=0)
        place = np.cumsum(is_first) - 1
        names = _name_places(image[is_first], (pc - base[image])[is_first], images)
        self._names = list(dict.fromkeys(names))
        number = {name: at for at, name in enumerate(self._names)}
        of_place = np.array([number[name] for name in names], np.int64)
        self._name_of_row = np.zeros(len(pc), np.int64)
        self._name_of_row[order] = of_place[place] if len(names) else 0


def _sound(value: Array) -> Array:
    """Counters without those that were overwritten, i64."""
    kept: Array = np.where(value < COUNTER_LIMIT, value, 0).astype(np.int64)
    return kept


def _name_places(image: Array, offset: Array, images: ImageMap) -> list[str]:
    """What the functions are called, each as rankings of a trace call it."""
    start = name_blocks(image, offset, images)[3]
    # What the table of symbols leaves out of a function is called as its beginning is.
    symbol, known, _, _ = name_blocks(image, np.where(start >= 0, start.astype(np.uint64), offset), images)
    files = [Path(clean_text(row.path)).name for row in images.images]
    names = []
    for one, word, begins in zip(image.tolist(), symbol.tolist(), start.tolist(), strict=True):
        if one < 0:
            names.append("?!(outside of images)")
        else:
            unnamed = f"sub_{begins:x}" if begins >= 0 else "(no function known)"
            names.append(f"{files[one]}!{known[word] if word >= 0 and known[word] else unnamed}")
    return names
