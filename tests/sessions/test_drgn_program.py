"""What drgn makes of a session's program: types, variables, symbols, stacks."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import DEVNULL

import pytest

import clew
from clew.errors import ClewError, ControlError, UsageError
from clew.process.processors.chosen import native_processor

drgn = pytest.importorskip("drgn", reason="drgn is not installed")


def test_types_variables_and_symbols_are_known(called: Path) -> None:
    with clew.spawn([called, "100000000"], stdout=DEVNULL) as session:
        program = session.drgn_program()
        request = program.type("struct request")
        assert [member.name for member in request.members] == ["kind", "path"]
        add = session.find("called!add")
        assert program.symbol("add").address == add == program["add"].address_
        assert program.symbol(add + 1).name == "add"
        assert program.source_location(add)[0].filename.endswith("called.c")
        # Memory is as it is when it is asked for: not relocated yet, then it is.
        session.add_breakpoint("main")
        session.resume()
        session.wait_for_stop(30)
        assert program["by_pointer"].value_() == add
        other = session.find("called!forward")
        session.write(program["by_pointer"].address_, other.to_bytes(8, "little"))
        assert program["by_pointer"].value_() == other
        session.remove_breakpoint("main")
        session.resume()
        assert program["by_pointer"].value_() == other
        # Libraries that are loaded by now.
        later = session.drgn_program()
        assert later.symbol("malloc").address == session.find("libc.so.6!malloc")


def test_stacks_have_variables(called: Path) -> None:
    with clew.spawn([called, "100000000", "2"], stdout=DEVNULL) as session:
        session.add_breakpoint("descend")
        session.resume()
        thread = session.wait_for_stop(30)
        program = session.drgn_program()
        stack = thread.drgn_stack(program)
        names = [frame.name for frame in stack]
        assert names[:3] == ["descend", "turn", "run"]
        assert stack[0]["depth"].value_() == 3
        request = stack[1]["request"]
        assert request.path.string_() == (b"/odd" if request.kind.value_() % 2 else b"/even")
        mine = [frame.pc for frame in thread.backtrace()]
        assert [stack[index].pc for index in range(3)] == mine[:3]
        session.remove_breakpoint("descend")
        session.resume()
        running = session.threads[0]
        assert running.state != "stopped"
        with pytest.raises(ControlError, match="not stopped"):
            running.drgn_stack(program)


def test_memory_is_the_program_s(called: Path) -> None:
    with clew.spawn([called, "2"], stdout=DEVNULL) as session:
        program = session.drgn_program()
        base = next(image.base for image in session.images if image.path == str(called))
        assert program.read(base, 4) == b"\x7fELF"
        for address in (8, native_processor().bases[0], native_processor().bases[0] - 4, (1 << 63) - 8, (1 << 64) - 8):
            with pytest.raises(drgn.FaultError):
                program.read(address, 8)
        session.resume()
        session.wait(30)
        with pytest.raises((drgn.FaultError, ClewError)):
            program.read(base, 4)
        with pytest.raises(ClewError):
            session.drgn_program()


def test_without_drgn_it_is_said(called: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "drgn", None)
    with clew.spawn([called, "1"], stdout=DEVNULL) as session, pytest.raises(UsageError, match="drgn is not installed"):
        session.drgn_program()
