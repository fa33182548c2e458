"""Makes a failing program smaller as long as it fails in the same way.

Pure but for the test it is given. Leaves out repetitions, bodies of functions and blocks, pieces.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.fuzz.program import Block, Function, Program

EMPTY_LEAVE = ("ret",)


def shrink(program: Program, fails: Callable[[Program], bool], limit_seconds: float) -> Program:
    """The smallest failing program found within the time. `fails` is asked only about smaller ones."""
    end = time.monotonic() + limit_seconds
    has_changed = True
    while has_changed:
        has_changed = False
        for simplify in (_fewer_repetitions, _fewer_functions, _fewer_blocks, _fewer_pieces, _plainer_blocks):
            n_parts = 2
            while True:
                candidates = list(simplify(program, n_parts))
                for candidate in candidates:
                    if time.monotonic() > end:
                        return program
                    if candidate != program and fails(candidate):
                        program, has_changed = candidate, True
                        break
                else:
                    if len(candidates) < n_parts:
                        break
                    n_parts *= 2
    return program


def _chunks(n_items: int, n_parts: int) -> Iterator[range]:
    """About `n_parts` ranges that cover n_items; fewer when there are not so many items."""
    size = max(1, n_items // n_parts)
    for start in range(0, n_items, size):
        yield range(start, min(start + size, n_items))


def _fewer_repetitions(program: Program, n_parts: int) -> Iterator[Program]:
    if n_parts == 2 and program.repetitions > 1:
        yield replace(program, repetitions=1)


def _empty(function: Function) -> Function:
    return replace(
        function, enter=function.enter[:1], blocks=(), leave=EMPTY_LEAVE if not function.drop else function.leave
    )


def _fewer_functions(program: Program, n_parts: int) -> Iterator[Program]:
    """Empties functions; the names stay, and what branches to blocks of emptied functions goes with them."""
    full = [n for n, function in enumerate(program.functions) if function.blocks]
    for chunk in _chunks(len(full), n_parts):
        emptied = {full[n] for n in chunk}
        yield program.with_functions(
            tuple(_empty(function) if n in emptied else function for n, function in enumerate(program.functions))
        )


def _map_blocks(program: Program, change: Callable[[int, Block], Block]) -> Program:
    number = -1
    functions = []
    for function in program.functions:
        blocks = []
        for block in function.blocks:
            number += 1
            blocks.append(change(number, block))
        functions.append(replace(function, blocks=tuple(blocks)))
    return program.with_functions(tuple(functions))


def _fewer_blocks(program: Program, n_parts: int) -> Iterator[Program]:
    blocks = [block for function in program.functions for block in function.blocks]
    full = [n for n, block in enumerate(blocks) if block.body or block.end or block.setup]
    for chunk in _chunks(len(full), n_parts):
        emptied = {full[n] for n in chunk}
        yield _map_blocks(
            program,
            lambda n, block, emptied=emptied: (  # type: ignore[misc]
                Block(block.label, (), (), (), (), ()) if n in emptied else block
            ),
        )


def _fewer_pieces(program: Program, n_parts: int) -> Iterator[Program]:
    """Pieces are numbered through the program; the end of a block is its last."""
    for chunk in _chunks(program.n_pieces, n_parts):
        number = 0
        functions = []
        for function in program.functions:
            blocks = []
            for block in function.blocks:
                body = tuple(piece for n, piece in enumerate(block.body) if number + n not in chunk)
                number += len(block.body)
                end = block.end
                if end:
                    end = () if number in chunk else end
                    number += 1
                blocks.append(replace(block, body=body, end=end))
            functions.append(replace(function, blocks=tuple(blocks)))
        yield program.with_functions(tuple(functions))


def _plainer_blocks(program: Program, n_parts: int) -> Iterator[Program]:
    """Loops that are none."""
    blocks = [block for function in program.functions for block in function.blocks]
    loops = [n for n, block in enumerate(blocks) if block.tail]
    for chunk in _chunks(len(loops), n_parts):
        plain = {loops[n] for n in chunk}
        yield _map_blocks(
            program,
            lambda n, block, plain=plain: (  # type: ignore[misc]
                replace(block, head=(), tail=()) if n in plain else block
            ),
        )
