"""Objects in expressions: how variables, members and elements are read, and what is no object."""

from __future__ import annotations

import struct

import pytest

from clew.binary.debug_types import DebugType
from clew.binary.variable_places import Constant, Operation, Place, Register, Stored, ThreadPointer, Vector
from clew.capture.compiler import asks_program, compile_capture
from clew.capture.grammar import parse
from clew.capture.interpreter import Value, interpret
from clew.capture.scope import Known
from clew.capture.syntax import Binary, Index, Member, Name, Number, ThreadLocal, TypeName, Unary, Variable
from clew.capture.types import CType
from clew.dataclass import replace
from clew.errors import CaptureError
from clew.protocol._constants import CaptureType
from tests.unit.capture.places import MACHINE, MEMORY_START, MadeUpPlace

DWARF = ("rax", "rdx", "rcx", "rbx", "rsi", "rdi")
I16, F32 = CType(CaptureType.I16), CType(CaptureType.F32)
POINTER = CType(CaptureType.U64, I16)
PLACES = {
    "in_memory": (I16, Place(Constant(MEMORY_START + 2))),
    "in_register": (I16, Place(None, (Register(5),))),
    "pointer": (POINTER, Place(None, (Register(4),))),
    "single": (F32, Place(None, (Vector(1),))),
    "number": (F32, Place(None, (Constant(0x3FC00000),))),
    "spilled": (F32, Place(None, (Stored(Constant(MEMORY_START + 8), 8),))),
    "nowhere": (I16, Place(None, (None,))),
    "unread": (F32, Place(None, (Register(5),))),
    "whole": (I16, Place(None, (Vector(0),))),
    "sum": (I16, Place(None, (Operation("shift_right", Register(5), Constant(4)),))),
    "shifted": (I16, Place(None, (Operation("shift_left", Register(5), Register(4)),))),
    "unknown": (I16, Place(None, (Register(16),))),
}


class MadeUpScope:
    def find_variable(self, name: str) -> Known:
        if name not in PLACES:
            raise CaptureError("it is not there")
        return Known(*PLACES[name], DWARF)

    def find_thread_local(self, image: str, name: str) -> Known:
        return Known(I16, Place(Operation("add", ThreadPointer(), Constant(4))), DWARF)

    def find_type(self, name: str) -> DebugType | None:
        return None


MEMORY = struct.pack("<4hf", 1, -2, 3, -4, 2.25)
PLACE = MadeUpPlace(MEMORY, rdi=0x1FFF0, rsi=MEMORY_START, xmm1=0x7777_7777_3FC0_0000)


def take(text: str) -> Value:
    values = interpret(compile_capture([text], replace(MACHINE, scope=MadeUpScope())), PLACE)
    assert values is not None
    return values[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("var:in_memory", -2),
        ("&var:in_memory", MEMORY_START + 2),
        ("*&var:in_memory", -2),
        ("(&var:in_memory)[1]", 3),
        ("1[&var:in_memory]", 3),
        ("var:in_register", -16),
        ("var:pointer[3]", -4),
        ("*(var:pointer + 2)", 3),
        ("&var:pointer[3] - var:pointer", 3),
        ("var:single", 1.5),
        ("var:number", 1.5),
        ("var:spilled", 2.25),
        ("var:sum", 0x1FFF),
        ("var:in_memory < 0 && var:in_register == -16", 1),
        ("-var:in_memory", 2),
        ("*(short*)(rsi + 6)", -4),
        ("((short*)rsi)[1]", -2),
        ("bytes(&var:in_memory, 2)", b"\xfe\xff"),
        ("errno", None),
    ],
)
def test_objects_are_read(text: str, value: Value) -> None:
    assert take(text) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("var:absent", "at character 1: var:absent: it is not there"),
        ("1 + var:nowhere", "at character 5: this part of it was optimised away"),
        ("&var:in_register", "has no address"),
        ("&5", "no place in memory"),
        ("&(var:in_memory + 1)", "no place in memory"),
        ("var:unread", "in that register"),
        ("var:whole", "integer in a vector register"),
        ("var:shifted", "a shift by a variable"),
        ("var:unknown", "in register 16"),
        ("var:in_memory.part", "i16 is no structure"),
        ("var:in_memory->part", "needs a pointer"),
        ("var:in_memory[1]", "only elements of arrays"),
        ("((absent*)rsi)->part", "absent: no such type"),
        ("(struct absent*)rsi", "struct absent: no such type"),
        ("var:pointer.", "the name of a member is missing"),
        ("var:pointer[1", "']' is missing"),
        ("((int*)rsp)" + "[0]" * 300, "more than 256 operators"),
        ("((int*)rsp)" + "[0]" * 200, "nested too deeply"),
    ],
)
def test_what_is_no_object_is_told(text: str, why: str) -> None:
    with pytest.raises(CaptureError) as raised:
        take(text)
    assert why in raised.value.message


def test_without_a_place_there_are_no_variables() -> None:
    for text in ("var:x", "errno", "tls:x", "((struct x*)rdi)->y"):
        assert asks_program(text)
        with pytest.raises(CaptureError, match="at a place in its code only"):
            compile_capture([text], MACHINE)
    for text in ("rdi", "*(int*)rsp", "str(arg1)", "((short*)rsi)[1]", "(unsigned long)tid"):
        assert not asks_program(text)


def test_variables_are_written_so() -> None:
    variable = Variable("p", 0)
    assert parse("var:p->a.b[1]") == Index(Member(Member(variable, "a", True, 5), "b", False, 8), Number(1, 11), 10)
    assert parse("*var:p->a") == Unary("*", Member(Variable("p", 1), "a", True, 6), 0)
    assert parse("var:a::b") == Variable("a::b", 0)
    assert parse("tls:lib-x.so.1!name") == ThreadLocal("lib-x.so.1", "name", 0)
    assert parse("errno") == ThreadLocal("", "errno", 0)
    assert parse("tls:a!=3") == Binary("!=", ThreadLocal("", "a", 0), Number(3, 7), 5)
    assert parse("var:p-rdi") == Binary("-", variable, Name("rdi", False, 6), 5)
    assert parse("(const struct node *)rdi") == Unary("cast", Name("rdi", False, 21), 0, TypeName("struct node", 1))
    assert parse("(node_t**)rdi") == Unary("cast", Name("rdi", False, 10), 0, TypeName("node_t", 2))
    assert parse("(rsi)*rdi") == Binary("*", Name("rsi", False, 1), Name("rdi", False, 6), 5)
