"""Makes programs of any size up, and what their threads executed: loops, branches, switches, calls.

Functions are made of pieces in a row: straight code, a call, an `if`, a loop, a switch. From how often a function is
entered follows how often each of its blocks and edges is executed, so flow is conserved in every thread. Functions are
numbered so that calls lead to higher numbers only, and each function but the first of each thread is called; those of
one call depth follow one another. Everything goes by whole arrays: a million blocks take seconds. Knows no tables.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clew.protocol.words import EDGE_WORDS
from clew.store.columns import Array

__all__ = ["BLOCK_BYTES", "EXITS", "IMAGES", "START_NS", "Program"]

START_NS: Final = 1_000_000_000
IMAGES: Final = (
    ("/usr/bin/made-up", 0x0000_5555_0000_0000),
    ("/usr/lib/libfirst.so.1", 0x0000_7F00_0000_0000),
    ("/usr/lib/libsecond.so.2", 0x0000_7F40_0000_0000),
)
BLOCK_BYTES: Final = 8
_INT: Final = np.int64

# The pieces that functions are made of, and how many blocks each has.
STRAIGHT, CALL, BRANCH, SKIP, FORK, LOOP, CALL_LOOP, BRANCH_LOOP, SWITCH, END = range(10)
_SIZES: Final = np.array([1, 1, 2, 1, 3, 2, 2, 3, 4, 1])
_SHARES: Final = (0.3, 0.0, 0.24, 0.06, 0.14, 0.1, 0.0, 0.12, 0.04)
"""How often each is chosen where there is no call."""
_CALLS: Final = (CALL, CALL_LOOP)

EXITS: Final = ("fall_through", "conditional", "call", "jump", "indirect_jump", "return", "syscall")
"""How blocks end, by the numbers that `Program.exit` has."""


class Program:
    """A program as arrays, and what its threads executed. Thread t begins in function t.

    By piece: `kind`, `function`, `first` (its first block). By block: `exit`, an index of `EXITS`; `address`;
    `target`, the block that its branch leads to, or -1; `executions`, [thread, block]. `edges`: `source`, `target`,
    `kind`, `callee` and `executions`, [thread, edge].
    """

    def __init__(self, n_blocks: int, n_threads: int, least_functions: int, random: np.random.Generator) -> None:
        self.n_blocks, self.n_threads = n_blocks, n_threads
        self._random = random
        self._make_pieces(least_functions)
        self._make_calls()
        self._place()
        self._execute()
        self._make_edges()

    @property
    def end_ns(self) -> int:
        """When the program ends; each block was first come to in the order of the blocks."""
        return START_NS + 1000 * (self.n_blocks + 2)

    def _make_pieces(self, least_functions: int) -> None:
        random = self._random
        n_pieces = self.n_blocks + 64
        # Few functions are long, many are short.
        length = np.minimum(2 + 3 * random.pareto(1.4, n_pieces), min(self.n_blocks / 12 + 4, 1200)).astype(_INT)
        function = np.repeat(np.arange(len(length)), length)[:n_pieces]
        kind = random.choice(len(_SHARES), len(function), p=_SHARES)
        is_call = random.random(len(function)) < 0.08
        starts = np.ones(len(function), bool)
        starts[1:] = function[1:] != function[:-1]
        # Each has a call, so that there are functions to call for all of them; it is where the function begins to work.
        is_call |= np.roll(starts, 1) & ~starts
        is_call[0] = False
        kind[is_call] = random.choice(_CALLS, int(is_call.sum()), p=(0.8, 0.2))
        is_root = function < self.n_threads
        kind[is_root] = np.where(is_call[is_root], CALL_LOOP, LOOP)
        # The end of each is a piece as well.
        last = np.append(np.flatnonzero(starts)[1:], len(function))
        kind = np.insert(kind, last, END)
        function = np.insert(function, last, np.unique(function))
        reached = np.cumsum(_SIZES[kind])
        # Whole functions as far as they go, then one of straight code.
        ends = np.flatnonzero((kind == END) & (reached <= self.n_blocks - 2))
        kept = int(ends[-1]) + 1
        n_left = self.n_blocks - int(reached[kept - 1])
        self.n_functions = int(function[kept - 1]) + 2
        if self.n_functions < least_functions + 1:
            raise ValueError(f"{self.n_blocks} blocks are too few")
        self.kind = np.concatenate([kind[:kept], np.full(n_left - 1, STRAIGHT), [END]])
        self.function = np.concatenate([function[:kept], np.full(n_left, self.n_functions - 1)])
        self.first = np.cumsum(_SIZES[self.kind]) - _SIZES[self.kind]

    def _make_calls(self) -> None:
        """The i-th call is the first one of function i + n_threads; those behind call functions that are deeper."""
        calls = np.flatnonzero(np.isin(self.kind, _CALLS))
        n_calls_before = np.searchsorted(self.function[calls], np.arange(self.n_functions + 1))
        # Functions of one depth follow one another, and so do their calls.
        begins = [0, self.n_threads]
        while begins[-1] < self.n_functions:
            following = min(int(n_calls_before[begins[-1]]) + self.n_threads, self.n_functions)
            begins.append(following)
        self.levels = begins
        depth = np.searchsorted(begins, np.arange(self.n_functions), side="right") - 1
        callee = np.arange(len(calls)) + self.n_threads
        deeper = np.array(begins)[depth[self.function[calls]] + 1]
        is_again = callee >= self.n_functions
        # Those that are called most are few: they are what all else is built on.
        share = self._random.random(len(calls)) ** 4
        n_deeper = self.n_functions - deeper
        again = self.n_functions - 1 - (share * n_deeper).astype(_INT)
        callee = np.where(is_again, np.maximum(again, deeper), callee)
        # Functions that call nothing are where calls end.
        ends = is_again & ((n_deeper <= 0) | (self._random.random(len(calls)) < 0.6))
        self.kind[calls[ends]] = np.where(self.kind[calls[ends]] == CALL, STRAIGHT, LOOP)
        self.calls, self.callee = calls[~ends], callee[~ends]

    def _place(self) -> None:
        """Addresses: functions in three images, one behind the other at multiples of 16."""
        function = np.repeat(self.function, _SIZES[self.kind])
        self.block_function = function
        self.first_block = np.searchsorted(function, np.arange(self.n_functions + 1))
        # What a branch that is always taken passes over was not executed, and is no block.
        gap = np.zeros(self.n_blocks, _INT)
        gap[self.first[self.kind == SKIP]] = BLOCK_BYTES
        inside = np.cumsum(gap + BLOCK_BYTES) - (gap + BLOCK_BYTES)
        inside -= inside[self.first_block[:-1]][function]
        last = self.first_block[1:] - 1
        size = (inside[last] + gap[last] + BLOCK_BYTES + 15) // 16 * 16
        self.function_image = np.where(
            np.arange(self.n_functions) < self.n_threads, 0, np.arange(self.n_functions) * 7 % 10 // 4
        )
        self.function_offset = np.zeros(self.n_functions, _INT)
        self.image_bytes = []
        for image in range(len(IMAGES)):
            of_image = np.flatnonzero(self.function_image == image)
            ends = 0x1000 + np.cumsum(size[of_image])
            self.function_offset[of_image] = ends - size[of_image]
            self.image_bytes.append((int(ends[-1]) if len(ends) else 0) + 0x1000)
        self.offset = self.function_offset[function] + inside
        base = np.array([base for _, base in IMAGES])
        self.address = base[self.function_image[function]] + self.offset

    def _execute(self) -> None:
        n_threads, random = self.n_threads, self._random
        entries = np.zeros((n_threads, self.n_functions), _INT)
        entries[np.arange(n_threads), np.arange(n_threads)] = 1
        executions = np.zeros((n_threads, self.n_blocks), _INT)
        turns = np.where(self.function < n_threads, 16, random.integers(2, 9, len(self.kind)))
        share = random.random(len(self.kind))
        site = self.first[self.calls]
        for begin, end in zip(self.levels, self.levels[1:], strict=False):
            low, high = np.searchsorted(self.function, [begin, end])
            kind, first = self.kind[low:high], self.first[low:high]
            n = entries[:, self.function[low:high]]
            # Loops of what is hot already turn once, or nothing else would be seen of the program.
            again = np.where(n > 10_000, 1, turns[low:high])
            is_loop = np.isin(kind, (LOOP, CALL_LOOP, BRANCH_LOOP))
            n = np.where(is_loop, n * again, n)
            some = np.where(n == 0, 0, np.clip((n * share[low:high]).astype(_INT), 1, np.maximum(n - 1, 1)))
            executions[:, first] = n
            for wanted, at, times in (
                ((BRANCH,), 1, some),
                ((FORK,), 1, some),
                ((FORK,), 2, n - some),
                ((LOOP, CALL_LOOP), 1, n),
                ((BRANCH_LOOP,), 1, some),
                ((BRANCH_LOOP,), 2, n),
                ((SWITCH,), 1, n // 4),
                ((SWITCH,), 2, n // 4),
                ((SWITCH,), 3, n - 2 * (n // 4)),
            ):
                which = np.isin(kind, wanted)
                executions[:, first[which] + at] = times[:, which]
            made = np.flatnonzero((self.calls >= low) & (self.calls < high))
            for thread in range(n_threads):
                np.add.at(entries[thread], self.callee[made], executions[thread, site[made]])
        self.executions = executions

    def _make_edges(self) -> None:
        n, kind, first = self.executions, self.kind, self.first
        exits = np.full(self.n_blocks, EXITS.index("fall_through"))
        target = np.full(self.n_blocks, -1)
        none = np.full(self.n_threads, -1)[:, None]
        parts: list[tuple[Array, Array, str, Array, Array]] = []

        def leave(block: Array, word: str) -> None:
            exits[block] = EXITS.index(word)

        def join(source: Array, to: Array, word: str, times: Array, callee: Array | None = None) -> None:
            parts.append((source, to, word, np.full(len(source), -1) if callee is None else callee, times))
            if word in ("taken", "jump"):
                target[source] = to

        def turn(block: Array, to: Array, taken: Array) -> None:
            """A conditional branch: `taken` times to `to`, else to behind it."""
            leave(block, "conditional")
            join(block, to, "taken", taken)
            join(block, block + 1, "not_taken", n[:, block] - taken)

        def of(*wanted: int) -> Array:
            found: Array = first[np.isin(kind, wanted)]
            return found

        def entered(block: Array) -> Array:
            """How often a loop was come to from outside: once each time its function was."""
            begins: Array = ends[:, self.block_function[block]]
            return begins

        # A function ends as often as it was entered.
        ends = self.executions[:, self.first_block[1:] - 1]
        at = of(STRAIGHT)
        join(at, at + 1, "fall_through", n[:, at])
        at = of(BRANCH)
        turn(at, at + 2, n[:, at] - n[:, at + 1])
        join(at + 1, at + 2, "fall_through", n[:, at + 1])
        at = of(SKIP)
        leave(at, "conditional")
        join(at, at + 1, "taken", n[:, at])
        at = of(FORK)
        turn(at, at + 2, n[:, at + 2])
        leave(at + 1, "jump")
        join(at + 1, at + 3, "jump", n[:, at + 1])
        join(at + 2, at + 3, "fall_through", n[:, at + 2])
        at = of(LOOP)
        join(at, at + 1, "fall_through", n[:, at])
        at = of(LOOP, CALL_LOOP)
        turn(at + 1, at, n[:, at + 1] - entered(at))
        at = of(BRANCH_LOOP)
        turn(at, at + 2, n[:, at] - n[:, at + 1])
        join(at + 1, at + 2, "fall_through", n[:, at + 1])
        turn(at + 2, at, n[:, at + 2] - entered(at))
        at = of(SWITCH)
        leave(at, "indirect_jump")
        for case in (1, 2, 3):
            join(at, at + case, "indirect_jump", n[:, at + case])
        for case in (1, 2):
            leave(at + case, "jump")
            join(at + case, at + 4, "jump", n[:, at + case])
        join(at + 3, at + 4, "fall_through", n[:, at + 3])
        at, called = first[self.calls], self.first_block[self.callee]
        leave(at, "call")
        join(at, called, "call", n[:, at])
        join(at, at + 1, "return", n[:, at], called)
        target[at] = called
        leave(of(END), "return")
        roots = np.arange(self.n_threads)
        leave(self.first_block[roots + 1] - 1, "syscall")
        parts.append((none[:, 0], self.first_block[roots], "start", none[:, 0], np.eye(self.n_threads, dtype=_INT)))

        self.exit, self.target = exits, target
        words = EDGE_WORDS
        executed = np.concatenate([part[4] for part in parts], axis=1)
        kept = np.flatnonzero(executed.any(axis=0))
        self.edges = {
            "source": np.concatenate([part[0] for part in parts])[kept],
            "target": np.concatenate([part[1] for part in parts])[kept],
            "kind": np.concatenate([np.full(len(part[0]), words.index(part[2])) for part in parts])[kept],
            "callee": np.concatenate([part[3] for part in parts])[kept],
            "executions": executed[:, kept],
        }
