"""The code of a process as far as it is known by now, as reading the paths of its threads takes it.

Runs in the controller. Worked out anew when there is more, from the records of code by what makes the trace later. Cut
is it where fragments begin and where paths say that they are at a block: entries that only a trace knows are not needed
to read on.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.analysis.order.path_code import BlockRows, ProcessCode, build_process_code
from clew.binary.flow_walk import FlowCode
from clew.dataclass import dataclass
from clew.protocol._generated import MAX_FRAGMENT_BYTES, NO_SYMBOL, RECORD_BYTES, ExitKind
from clew.protocol.codec import NOWHERE, Ending
from clew.protocol.codec_layouts import BLOCK, BLOCK_DETAIL
from clew.recording.assembly.arrays.keys import is_kernel_call, sorted_unique, spans
from clew.recording.assembly.arrays.rows import Rows
from clew.recording.assembly.blocks.cut import NONE, CutCode, cut_fragments
from clew.recording.assembly.code import ParsedCode, parse_code
from clew.recording.assembly.records.records import Fragments
from clew.recording.assembly.tables.path_tables import find_last_instructions
from clew.recording.raw.code_records import CodeRecords
from clew.recording.reading.inherit import Announced
from clew.sessions.events.gates import NO_GATES, Gates

__all__ = ["LiveCode", "ReadCode"]

Array = npt.NDArray[Any]

MAX_COUNTERS: Final = 1 << 40
"""Which counters there are is of no moment here."""
_MOST_BYTES: Final = np.uint64(MAX_FRAGMENT_BYTES)

_ENDINGS: Final = np.full(max(ExitKind) + 1, Ending.STOP, np.uint8)
for _kind, _ending in {
    ExitKind.FALL_THROUGH: Ending.FALL_THROUGH,
    ExitKind.SYSCALL: Ending.FALL_THROUGH,
    ExitKind.JUMP: Ending.JUMP,
    ExitKind.CONDITIONAL: Ending.CONDITIONAL,
    ExitKind.CALL: Ending.CALL,
    ExitKind.INDIRECT_JUMP: Ending.INDIRECT_JUMP,
    ExitKind.INDIRECT_CALL: Ending.INDIRECT_CALL,
    ExitKind.RETURN: Ending.RETURN,
}.items():
    _ENDINGS[_kind] = _ending
_DIRECT: Final = (ExitKind.JUMP, ExitKind.CONDITIONAL, ExitKind.CALL)
_LEADING_AWAY: Final = (ExitKind.JUMP, ExitKind.INDIRECT_JUMP, ExitKind.RETURN, ExitKind.NONE)
_SYMBOL_ENDINGS: Final = (Ending.INDIRECT_JUMP, Ending.INDIRECT_CALL, Ending.RETURN)


@dataclass(frozen=True)
class ReadCode:
    """Code that is known: `process` as paths go through it, `flow` what events say of it."""

    process: ProcessCode
    flow: FlowCode

    @property
    def blocks(self) -> Array:
        """The blocks, of dtype BLOCK, as they are where paths begin."""
        return self.process.code.blocks

    @cached_property
    def has_versions(self) -> bool:
        """Whether code was seen to change: then an address that a block begins at may lie inside another."""
        return bool(self.process.code_version.any())

    def is_known(self, places: Array) -> Array:
        """At which addresses (u64) there is code."""
        found = self.process.find(places)
        is_there = found != NOWHERE
        blocks = self.blocks[np.where(is_there, found, 0)] if len(self.blocks) else np.zeros(len(found), BLOCK)
        known: Array = is_there & ((blocks["n_instructions"] > 0) | (blocks["ending"] != Ending.STOP))
        return known


class LiveCode:
    """Of one process; `parent` is what it was forked from at time stamp `fork_tsc`."""

    def __init__(self, records: dict[int, CodeRecords] | None = None) -> None:
        """`records` are what came before, by thread."""
        self._records = records or {}
        self._inherited = np.zeros((0, RECORD_BYTES), np.uint8)
        self._places = np.zeros(0, np.uint64)
        self._gates = NO_GATES
        self._is_stale = True
        self._read: ReadCode | None = None
        self.n_rounds = 0
        """How often all that threads had written was taken: two rounds later all is known that a thread could have
        executed."""
        self.is_complete = False
        """Nothing more comes."""

    def inherit(self, parent: LiveCode, fork_tsc: int) -> None:
        """It is a fork of that, made at a time stamp."""
        self._inherited = Announced(parent._all_records()).find_before(fork_tsc)
        self._is_stale = True

    def add(self, stream: int, records: Array) -> None:
        """Learn of records of a thread that are of no path, shape (n, RECORD_BYTES)."""
        self._is_stale |= self._records.setdefault(stream, CodeRecords()).add(records)

    def want(self, places: Array) -> None:
        """Paths come to these addresses (u64), whether or not a fragment begins there."""
        read = self.read()
        if not read.has_versions:
            places = places[~read.is_known(places)]
        further = sorted_unique(self._places, places)
        if len(further) > len(self._places):
            self._places, self._is_stale = further, True

    def set_gates(self, gates: Gates) -> None:
        """From now on it is cut there, and blocks say so."""
        if gates is not self._gates:
            self._gates, self._is_stale = gates, True

    @property
    def is_stale(self) -> bool:
        """Whether there is more than was read last."""
        return self._is_stale

    def read(self) -> ReadCode:
        """What is known; the same as before if there is no more."""
        if self._is_stale or self._read is None:
            self._is_stale = False
            self._read = _Build(parse_code(self._all_records(), MAX_COUNTERS), self._places, self._gates).code
        return self._read

    def _all_records(self) -> Array:
        return np.concatenate([self._inherited, *(self._records[at].join() for at in sorted(self._records))])


class _Build:
    """Works code out."""

    def __init__(self, code: ParsedCode, places: Array, gates: Gates) -> None:
        self._parsed, self._places, self._gates = code, places, gates
        self._fragments: Fragments = code.parsed.fragments
        cut = self._cut()
        segments = np.flatnonzero(cut.copy != NONE)
        piece = cut.copy[segments]
        self._fragment: Array = cut.fragment[piece].astype(np.int64)
        self._start_pc, self._end_pc = cut.start_pc[piece], cut.end_pc[piece]

    @cached_property
    def code(self) -> ReadCode:
        """What is known."""
        fragments, fragment = self._fragments, self._fragment
        exit_kind, target_pc = self._exit_kind, fragments.target_pc[fragment]
        branch_pc = find_last_instructions(fragments, fragment, self._end_pc)
        ending = _ENDINGS[exit_kind]
        goes_back = target_pc <= branch_pc
        ending[(ending == Ending.JUMP) & goes_back] = Ending.BACK_JUMP
        n_instructions = fragments.count_instructions(fragment, self._start_pc, self._end_pc)
        unread = self._find_unread()
        n, n_all = len(fragment), len(fragment) + len(unread)

        def join(values: Array, others: Array | int) -> Array:
            return np.concatenate([values, np.broadcast_to(np.asarray(others, values.dtype), len(unread))])

        rows = BlockRows(
            block_id=np.arange(n_all),
            pc=join(self._start_pc, unread),
            end_pc=join(self._end_pc, unread),
            branch_pc=join(branch_pc, unread),
            target_pc=join(target_pc, 0),
            n_instructions=join(n_instructions.astype(np.int64), 0),
            code_version=join(fragments.code_version[fragment].astype(np.uint32), 0),
            ending=join(ending, np.where(is_kernel_call(unread), Ending.RETURN, Ending.STOP)),
            is_taken=join((goes_back & (ending == Ending.CONDITIONAL)).astype(np.uint8), 0),
        )
        later = np.flatnonzero(fragments.is_later_code)
        process = build_process_code(
            rows,
            self._find_targets(branch_pc, ending),
            (
                fragments.fragment_id[later].astype(np.int64),
                fragments.app_pc[later],
                fragments.end_pc[later],
                fragments.code_version[later].astype(np.uint32),
            ),
        )
        details = np.zeros(len(process.code.blocks), BLOCK_DETAIL)
        starts, first_start = self._find_starts()
        own = np.flatnonzero(process.block_id < n)
        row = process.block_id[own]
        details["branch_pc"][: len(process)] = process.branch_pc
        details["first_start"][own] = first_start[row]
        details["is_wanted"][own] = ~fragments.is_left_out[fragment[row]]
        details["gate"][own] = self._gates.at(self._start_pc[row])
        details["goes_on"][own] = exit_kind[row] == ExitKind.FALL_THROUGH
        return ReadCode(process, FlowCode(process.code.targets, details, starts))

    @cached_property
    def _exit_kind(self) -> Array:
        """By piece; one that was cut goes on behind it."""
        is_end = self._end_pc == self._fragments.end_pc[self._fragment]
        kinds: Array = np.where(is_end, self._fragments.exit_kind[self._fragment], ExitKind.FALL_THROUGH)
        return kinds

    def _cut(self) -> CutCode:
        fragments, space = self._fragments, self._parsed.space
        places = sorted_unique(self._places, self._gates.places)
        low, high = (
            np.searchsorted(fragments.app_pc, bound, "right")
            for bound in (np.maximum(places, _MOST_BYTES) - _MOST_BYTES, places)
        )
        fragment, place = spans(low, high - low), np.repeat(places, high - low)
        is_inside = fragments.end_pc[fragment] > place
        entries = sorted_unique(space.key(fragments.code_version[fragment[is_inside]], place[is_inside]))
        onward = space.key(fragments.code_version, fragments.end_pc)
        return cut_fragments(fragments, space, np.arange(len(fragments)), fragments.end_pc, onward, entries)

    def _find_unread(self) -> Array:
        """Addresses that code leads to and where none was read.

        Nobody came there yet, or none could be executed, or the kernel executes it by itself.
        """
        fragments = self._fragments
        edges = self._parsed.parsed.dynamic_edges["target_pc"].astype(np.uint64)
        direct = fragments.target_pc[np.isin(fragments.exit_kind, _DIRECT)]
        behind = fragments.end_pc[~np.isin(fragments.exit_kind, _LEADING_AWAY)]
        targets = sorted_unique(self._places, edges, direct, behind)
        return targets[~np.isin(targets, self._start_pc)]

    def _find_targets(self, branch_pc: Array, ending: Array) -> tuple[Array, Array, Array]:
        """Of indirect branches and returns: of which piece, by which number, where. Copies of one have the same."""
        fragments, edges = self._fragments, self._parsed.parsed.dynamic_edges
        edges = edges[edges["symbol"] != NO_SYMBOL]
        source = Rows(fragments.fragment_id).find_first(edges["source_fragment_id"])
        edges, source = edges[source >= 0], source[source >= 0]
        branch = find_last_instructions(fragments, source, fragments.end_pc[source])
        takes = np.flatnonzero(np.isin(ending, _SYMBOL_ENDINGS))
        order = takes[np.argsort(branch_pc[takes], kind="stable")]
        low, high = (np.searchsorted(branch_pc[order], branch, side) for side in ("left", "right"))
        row = np.repeat(np.arange(len(edges)), high - low)
        piece = order[spans(low, high - low)]
        return piece, edges["symbol"][row].astype(np.int64), edges["target_pc"][row].astype(np.uint64)

    def _find_starts(self) -> tuple[Array, Array]:
        """Where instructions begin in all pieces, in bytes (u16), and where each piece's begin among these."""
        fragments, fragment = self._fragments, self._fragment
        size = (self._end_pc - self._start_pc).astype(np.int64)
        into = fragments.bit_at[fragment].astype(np.int64) + (self._start_pc - fragments.app_pc[fragment]).astype(
            np.int64
        )
        at = spans(into, size)
        is_start = fragments.starts.is_set(at)
        begins = np.cumsum(size) - size
        offset = np.arange(len(at)) - np.repeat(begins, size)
        before = np.concatenate([[0], np.cumsum(is_start)])
        return offset[is_start].astype(np.uint16), before[begins].astype(np.uint32)
