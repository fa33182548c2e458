"""What is the same for all processors, tried with one that does not exist; and that the real ones fit the schema."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from clew.address import Pid, RemoteAddress, Tid
from clew.binary.architectures.architecture import Architecture
from clew.binary.architectures.known import KNOWN, architecture_named, architecture_of_machine
from clew.binary.disassembly import call_size, disassemble, instruction_starts
from clew.errors import ClewError, RemoteCallError, TargetError
from clew.process import ptrace, refuge, stopped_process, thread_state
from clew.process.injection_plan import HEAP_BYTES, plan_injection
from clew.process.linux import PROT_EXEC, PROT_READ, number_of_call
from clew.process.maps import Mapping
from clew.process.processors.chosen import PROCESSORS, native_processor, processor_named
from clew.process.shared_layout import SharedLayout
from clew.process.stopped_process import StoppedProcess
from clew.process.thread_state import ThreadState, call_to_make_again, give_back, parse_state, read_state
from clew.protocol._constants import ARCHITECTURES, LAYOUTS, HoldReason
from clew.protocol.schema import load_schema
from clew.recording.following.stopped_thread import StoppedThread
from tests.unit.process.made_up_processor import (
    ARCHITECTURE,
    DEFINITION,
    THREAD_STATE,
    MadeUpProcessor,
    MadeUpRegisters,
)

TID = Tid(7)
CODE = RemoteAddress(0x1000)
FUTEX, MMAP, RECVFROM, RESTART = 1, 2, 3, 9
MASK = 1 << 63 | 1


class Memory:
    """What of a stopped process `read_state` asks."""

    def __init__(self, processor: MadeUpProcessor) -> None:
        self.processor = processor
        self.content: dict[int, bytes] = {CODE: b"CALL"}

    def read(self, address: RemoteAddress, size_bytes: int) -> bytes:
        found = self.content.get(address, b"")
        if len(found) < size_bytes:
            raise TargetError(1, "nothing there")
        return found[:size_bytes]


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch) -> MadeUpProcessor:
    """The made-up processor, which every task has; what the kernel keeps of a task is made up, too."""
    made_up = MadeUpProcessor()
    for module in (thread_state, stopped_process):
        monkeypatch.setattr(module, "processor_of", lambda task: made_up)
    monkeypatch.setattr(ptrace, "get_signal_mask", lambda task: MASK)
    monkeypatch.setattr(ptrace, "set_signal_mask", lambda task, mask: None)
    monkeypatch.setattr(ptrace, "get_rseq", lambda task: None)
    monkeypatch.setitem(LAYOUTS, "ThreadState", THREAD_STATE)
    return made_up


def read(processor: MadeUpProcessor, memory: Memory | None = None) -> ThreadState:
    return read_state(memory or Memory(processor), TID)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "result", "wanted"),
    [
        (FUTEX, -512, (512, FUTEX)),
        (FUTEX, -516, (516, RESTART)),
        # A stop ends this one, whatever its number here is; the other has not that number here.
        (RECVFROM, -errno.EINTR, (514, RECVFROM)),
        (45, -errno.EINTR, (0, 0)),
        (FUTEX, -errno.EINTR, (0, 0)),
        (FUTEX, 3, (0, 0)),
        (None, -512, (0, 0)),
    ],
)
def test_the_call_to_make_again(call: int | None, result: int, wanted: tuple[int, int]) -> None:
    assert call_to_make_again(MadeUpRegisters(call, one=result), ARCHITECTURE) == wanted


def test_a_thread_inside_a_call_is_taken_in_front_of_it_and_put_back(processor: MadeUpProcessor) -> None:
    inside = MadeUpRegisters(FUTEX, one=-512, two=22, three=FUTEX, four=44, where=CODE + 4, carry=1)
    processor.tasks[TID] = inside.copy()
    state = read(processor)
    assert (state.pc, state.call_code, state.own, state.mask) == (CODE, 512, {"carry": 1}, MASK)
    assert state.registers == ((-512), 22, FUTEX, 44)
    processor.tasks[TID] = MadeUpRegisters(narrow=1)
    give_back(state)
    assert processor.tasks[TID] == inside


def test_what_only_looks_like_a_call_is_left_as_it_is(processor: MadeUpProcessor) -> None:
    processor.tasks[TID] = MadeUpRegisters(FUTEX, one=-512, where=CODE + 8)
    state = read(processor)
    assert (state.pc, state.call_code, state.registers[0]) == (CODE + 8, 0, -512)


def test_a_thread_in_a_restartable_sequence_goes_on_at_its_abort_handler(
    processor: MadeUpProcessor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ptrace, "get_rseq", lambda task: (RemoteAddress(0x5000), 0x77))
    memory = Memory(processor)
    memory.content[0x5008] = (0x6000).to_bytes(8, "little")
    memory.content[0x6000] = b"".join(word.to_bytes(8, "little") for word in (0, CODE, 16, 0x9000))
    processor.tasks[TID] = MadeUpRegisters(where=CODE + 8)
    state = read(processor, memory)
    assert (state.pc, state.rseq_area, state.rseq_signature) == (0x9000, 0x5000, 0x77)


def test_a_state_is_packed_as_its_architecture_has_it(processor: MadeUpProcessor) -> None:
    state = ThreadState(TID, (1, 2, 3, 4), 0x401000, {"carry": 1}, MASK, 514)
    data = state.packed(DEFINITION)
    assert int.from_bytes(data[8:16], "little") == 0x401000
    assert parse_state(data, DEFINITION) == state


def test_calls_are_made_as_the_processor_makes_them(
    processor: MadeUpProcessor, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = Pid(os.getpid())
    processor.tasks[me] = MadeUpRegisters(FUTEX, one=-512, where=CODE, narrow=1)
    process = StoppedProcess(me)
    results = [0x7000, -errno.ENOMEM]
    made: list[MadeUpRegisters] = []

    def run() -> None:
        if processor.tasks[me].waits_in is None:
            made.append(processor.tasks[me].copy())
            processor.tasks[me].waits_in = processor.tasks[me].values["three"]
        else:
            processor.tasks[me].result = results.pop(0)
            processor.tasks[me].leave_call()

    monkeypatch.setattr(process, "run_to_syscall_stop", run)
    with pytest.raises(TargetError, match="32-bit"):
        process.check_width()
    process.call_at(RemoteAddress(0x8000))
    try:
        assert process.call("mmap", 11, -1) == 0x7000
        assert made == [MadeUpRegisters(one=11, two=-1, three=MMAP, where=0x8000)]
        with pytest.raises(RemoteCallError) as refused:
            process.call("mmap", 1)
        assert refused.value.errno == errno.ENOMEM
        with pytest.raises(OSError, match="epoll_wait"):
            process.call("epoll_wait")
    finally:
        process.close()


def test_a_refuge_holds_what_the_processor_goes_on_with(
    processor: MadeUpProcessor, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = Pid(os.getpid())
    processor.tasks[me] = MadeUpRegisters(where=CODE, narrow=1)
    process = StoppedProcess(me)
    written: dict[int, bytes] = {}
    monkeypatch.setattr(process, "read", lambda address, size: bytes(size))
    monkeypatch.setattr(process, "write", lambda address, data: written.setdefault(address, bytes(data)))
    state = ThreadState(TID, (1, 2, 3, 4), 0x401000, {"carry": 1}, MASK)
    code = mapping(0x10000, 0x20000)
    try:
        with refuge.refuge(process, [code], state):
            (address, content) = next(iter(written.items()))
            assert content == processor.refuge_code(MadeUpRegisters(one=1, two=2, three=3, four=4), MASK)
            waiting = processor.tasks[me]
            assert (waiting.pc, waiting.waits_in, waiting.values["narrow"]) == (address + 4, None, 1)
        assert (processor.tasks[me].pc, processor.tasks[me].general) == (0x401000, (1, 2, 3, 4))
    finally:
        process.close()


def mapping(start: int, end: int) -> Mapping:
    return Mapping(RemoteAddress(start), RemoteAddress(end), PROT_READ | PROT_EXEC, False, 0, 0, 0, "/bin/it")  # type: ignore[arg-type]


def test_the_runtime_goes_where_the_processor_has_room_for_it(processor: MadeUpProcessor) -> None:
    layout = SharedLayout(max_threads=16, counter_bytes=1 << 20)
    plan = plan_injection(1 << 20, layout, 1 << 30, [], bases=processor.bases)
    assert plan.image_base == processor.bases[0]
    assert plan.end < 1 << 39
    in_the_way = [mapping(plan.heap_base, plan.heap_base + 4096)]
    assert plan_injection(1 << 20, layout, 1 << 30, in_the_way, bases=processor.bases).image_base == processor.bases[1]
    with pytest.raises(ClewError, match="no room"):
        plan_injection(1 << 20, layout, HEAP_BYTES, [mapping(0, 1 << 40)], bases=processor.bases)


def test_code_is_decoded_and_calls_are_named_by_the_architecture() -> None:
    code = b"\x11\0\0\0\x33\x05\0\0\xff\xff"
    assert [row.text for row in disassemble(code, 0x40, ARCHITECTURE)] == ["nop 0x0", "enter 0x5", "(bad)"]
    assert instruction_starts(code, 0x40, ARCHITECTURE) == [0x40, 0x44]
    assert (call_size(code, ARCHITECTURE), call_size(code[4:], ARCHITECTURE)) == (None, 4)
    assert [ARCHITECTURE.name_system_call(number) for number in (MMAP, 9, 10)] == [
        "mmap",
        "restart_syscall",
        "system call 10",
    ]
    assert ARCHITECTURE.name_wait(RESTART) == "a system call that a stop interrupted"
    assert number_of_call("mmap", ARCHITECTURE) == MMAP


def test_a_stopped_thread_shows_registers_by_their_names() -> None:
    thread = StoppedThread(TID, HoldReason.ASKED, (1, 2, 3, 4, 5, 6), (), 0, 0, DEFINITION)
    assert thread.by_name == {"one": 1, "two": 2, "three": 3, "four": 4, "where": 5, "carry": 6}
    assert (thread.pc, thread.stack_pointer) == (5, 4)


def test_of_an_architecture_that_is_not_known_nothing_is_decoded() -> None:
    nothing = architecture_named("pdp11")
    assert (nothing.name, nothing.title) == ("pdp11", "pdp11")
    assert [row.text for row in disassemble(b"\x90\x90", 0, nothing)] == ["(bad)"]
    assert instruction_starts(b"\x90", 0, nothing) == []
    assert (nothing.find_call_number(b"\x90"), nothing.name_system_call(1)) == (None, "system call 1")
    assert not nothing.is_for_other_width(b"\x7fELF\x01\x01" + bytes(58))
    assert architecture_of_machine(DEFINITION.machine) is None


def test_a_machine_that_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    here = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((*here[:4], "pdp11")))
    native_processor.cache_clear()
    try:
        with pytest.raises(ClewError, match="this machine is pdp11; clew follows programs on x86-64"):
            native_processor()
    finally:
        native_processor.cache_clear()


def test_known_processors_are_those_of_the_schema() -> None:
    schema = load_schema(Path(__file__).resolve().parents[3] / "protocol" / "schema.toml")
    names = [one.name for one in schema.architectures]
    assert names == list(ARCHITECTURES) == [one.name for one in KNOWN] == [one.architecture.name for one in PROCESSORS]
    for architecture, processor in zip(KNOWN, PROCESSORS, strict=True):
        definition = ARCHITECTURES[architecture.name]
        assert processor.definition is definition and processor.architecture is architecture
        assert (architecture.machine, architecture.title) == (definition.machine, definition.title)
        assert architecture.program_counter == definition.program_counter
        assert architecture_of_machine(definition.machine) is architecture_named(architecture.name) is architecture
        assert processor_named(architecture.name) is processor
        for name in thread_state._ENDED_BY_STOPS:
            number = architecture.find_call(name)
            assert number is None or architecture.find_call_name(number) == name
        assert isinstance(architecture, Architecture)
