"""Callouts in C: they are compiled, put into blocks, and change nothing but what they are to."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import clew
from clew.sessions.transforms.blocks import CodeBlock
from tests.e2e import runs
from tests.fuzz.edits import build_edited, fixed_program
from tests.sessions.called_output import TURNS, output_of, total_with

_MODES = ("coverage", "counts", "full")
SOURCE = """
static uint64_t n_calls, arguments[2], mixed;
int limit = 3;
static __attribute__((noinline)) CLEW_CALLOUT int helper(int x) { return x > limit ? helper(x - 1) + 1 : x; }
CLEW_CALLOUT void count(void) { n_calls++; }
CLEW_CALLOUT uint64_t give(void) { return n_calls += 3; }
CLEW_CALLOUT uint64_t give_back(uint64_t unused)
{
    n_calls += helper(3);
    return 77;
}
void plain(void) { n_calls++; }
CLEW_CALLOUT void mix(void)
{
    mixed = mixed * 31 + n_calls++;
    if (mixed & 1)
        mixed ^= mixed >> 7;
    while (mixed >> 60)
        mixed -= mixed >> 3;
}
CLEW_CALLOUT void look(struct clew_registers *r) { arguments[0] += r->rdi; arguments[1] += helper((int)r->rsi); }
CLEW_CALLOUT void set(struct clew_registers *r) { r->rax = 7; arguments[0] = r->rsp; }
static __attribute__((noinline)) CLEW_CALLOUT void add_to(struct clew_registers *r) { arguments[0] += r->rdi; }
CLEW_CALLOUT void pass_on(struct clew_registers *r) { add_to(r); }
CLEW_CALLOUT void touch(struct clew_registers *r)
{
    uint64_t *all = &r->rax;
    for (int i = 0; i < 16; i++)
        arguments[i & 1] ^= all[i] * 3 + n_calls++;
}
"""


def mixed_by(n_calls: int) -> int:
    """What `mix` comes to."""
    mixed = 0
    for n in range(n_calls):
        mixed = (mixed * 31 + n) % 2**64
        if mixed & 1:
            mixed ^= mixed >> 7
        while mixed >> 60:
            mixed -= mixed >> 3
    return mixed


@pytest.mark.parametrize("mode", _MODES)
def test_compiled_callouts_count_and_look(called: Path, mode: str) -> None:
    with clew.spawn([called, str(TURNS)], mode=mode, stdout=subprocess.PIPE) as session:
        code = session.compile(SOURCE)
        assert {"count", "look", "set"} <= set(code.functions)
        assert {"arguments", "limit", "n_calls"} <= set(code.variables)

        @session.transform("called!add")
        def change(block: CodeBlock) -> None:
            block[0].call(code, "look")
            block[0].call(code, "count", after=True)
            block[1].call(code, "count")

        session.resume()
        assert session.stdout is not None
        assert session.stdout.read() == output_of(called)
        session.wait(60)
        assert not change.errors and not session.trace.verify()
        assert code.number("n_calls") == 2 * 3 * TURNS
        assert int.from_bytes(code.read("arguments")[:8], "little") == sum(n + 2 + n for n in range(TURNS))
        assert int.from_bytes(code.read("arguments")[8:], "little") == sum(1 + n + 3 for n in range(TURNS))
        assert code.number("limit") == 3


def test_what_a_callout_is_shown_it_can_pass_on(called: Path) -> None:
    with clew.spawn([called, str(TURNS)], stdout=subprocess.PIPE) as session:
        code = session.compile(SOURCE)
        session.transform("called!add", lambda block: block[0].call(code, "pass_on"))
        session.resume()
        session.wait(60)
        assert int.from_bytes(code.read("arguments")[:8], "little") == sum(n + 2 + n for n in range(TURNS))


def test_compiled_callouts_change_registers(called: Path) -> None:
    with clew.spawn([called, str(TURNS)], stdout=subprocess.PIPE) as session:
        code = session.compile(SOURCE)
        session.transform("called!add", lambda block: block[1].call(code, "set"))
        log = session.log_calls("add", capture=["rsp"])
        session.resume()
        assert session.stdout is not None
        assert int(session.stdout.read()) == total_with(lambda a, b: 7)
        session.wait(60)
        assert int.from_bytes(code.read("arguments")[:8], "little") == log.read()["rsp"][-1].as_py()


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 6))])
@pytest.mark.parametrize(
    "function",
    ["give_back", "mix", *(pytest.param(one, marks=pytest.mark.long) for one in ("count", "give", "look", "touch"))],
)
def test_compiled_callouts_change_nothing_else(seed: int, function: str, tmp_path: Path) -> None:
    edited = build_edited(fixed_program(seed, 6), seed, tmp_path)
    native = runs.run([*runs.FIXED_LAYOUT, edited.plain], timeout_seconds=20)
    with clew.spawn([*runs.FIXED_LAYOUT, edited.plain], stdout=subprocess.PIPE) as session:
        code = session.compile(SOURCE)

        def change(block: CodeBlock) -> None:
            # There is room for some dozens in a block.
            for instruction in block[:: 1 + len(block) // 24]:
                instruction.call(code, function)

        transformer = session.transform(str(edited.plain), change)
        session.resume()
        assert session.stdout is not None
        assert session.wait(60) == native.status == 0
        assert session.stdout.read() == native.stdout
        assert not transformer.errors and not session.trace.verify()
        assert code.number("n_calls") > 1000 or function == "look"
        assert code.number("mixed") == (mixed_by(code.number("n_calls")) if function == "mix" else 0)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_compiled_callouts_are_shown_the_programs_registers(seed: int, tmp_path: Path) -> None:
    plain = build_edited(fixed_program(seed, 6), seed, tmp_path).plain
    seen = set()
    # In `coverage` nothing is counted, so nothing of the runtime's can be in a register.
    for mode in _MODES:
        with clew.spawn([*runs.FIXED_LAYOUT, plain], mode=mode, stdout=subprocess.DEVNULL) as session:
            code = session.compile(SOURCE)

            def change(block: CodeBlock, code: clew.NativeCode = code) -> None:
                for instruction in block[:: 1 + len(block) // 24]:
                    instruction.call(code, "touch")

            session.transform(str(plain), change)
            session.resume()
            assert session.wait(60) == 0
            seen.add((code.number("n_calls"), code.read("arguments")))
    assert len(seen) == 1


def test_children_have_data_of_their_own(called: Path) -> None:
    command = ["sh", "-c", f"{called} {TURNS}; {called} {TURNS}; true"]
    with clew.spawn(command, stdout=subprocess.PIPE) as session:
        code = session.compile(SOURCE)
        session.transform("called!add", lambda block: block[0].call(code, "count"))
        session.resume()
        session.wait(60)
        counts = [code.number("n_calls", pid) for pid in code.pids]
    assert counts == [3 * TURNS] * 2


def test_what_is_not_c_is_told(called: Path) -> None:
    with clew.spawn([called, "1"], stdout=subprocess.PIPE) as session:
        for wrong, reason in (
            ("int f(", "expected"),
            ("double x; CLEW_CALLOUT void f(void) { x *= 2; }", "callout"),
            ("void g(void); CLEW_CALLOUT void f(void) { g(); }", "undefined|caller"),
            ("char big[1 << 21]; CLEW_CALLOUT void f(void) { big[0]++; }", "are left"),
        ):
            with pytest.raises(clew.ClewError, match=reason):
                session.compile(wrong)
        code = session.compile(SOURCE)
        assert "plain" not in code.functions and "give_back" in code.functions
        with pytest.raises(clew.ClewError, match="no variable"):
            code.read("nothing")
        with pytest.raises(clew.ClewError, match="processes that call it"):
            code.write("limit", 4)
