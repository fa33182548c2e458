"""A form that is none is refused, whoever made it; one that is not is worth what it says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clew.capture.form import Form, Instruction, check_form
from clew.capture.interpreter import interpret
from clew.capture.types import SIZES, is_float
from clew.errors import CaptureError
from clew.protocol._constants import CaptureOperation, CaptureType
from tests.unit.capture.places import MEMORY_START, MadeUpPlace

INSTRUCTIONS = st.builds(
    Instruction,
    st.sampled_from(list(CaptureOperation)),
    st.sampled_from(list(CaptureType)),
    st.integers(0, 6),
    st.integers(0, 6),
    st.one_of(st.integers(0, 12), st.integers(0, (1 << 64) - 1), st.just(MEMORY_START)),
)
FORMS = st.builds(
    Form,
    st.lists(INSTRUCTIONS, max_size=8),
    st.lists(st.integers(0, 7), max_size=4),
    st.one_of(st.none(), st.integers(0, 7)),
    st.binary(max_size=16),
)


@given(FORMS)
def test_what_is_sound_has_values_of_its_types(form: Form) -> None:
    try:
        check_form(form)
    except CaptureError:
        return
    assert Form.unpack(form.pack()) == form
    place = MadeUpPlace(bytes(range(64)), rax=5, rdi=MEMORY_START, xmm0=1 << 62)
    every = Form(form.instructions, list(range(len(form.instructions))), None, form.data)
    values = interpret(every, place)
    assert values is not None
    for one, value in zip(form.instructions, values, strict=True):
        if value is None:
            continue
        if one.result == CaptureType.TEXT:
            assert isinstance(value, bytes)
        elif is_float(one.result):
            assert isinstance(value, float)
        else:
            assert isinstance(value, int)
            bits = 8 * SIZES[one.result]
            low = -(1 << bits - 1) if one.result.name.startswith("I") else 0
            assert low <= value < low + (1 << bits)


@given(st.binary(max_size=120))
def test_bytes_that_are_no_form_are_refused(packed: bytes) -> None:
    try:
        form = Form.unpack(packed)
    except CaptureError:
        return
    check_form(form)
