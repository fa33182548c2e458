"""Machine code of text."""

from __future__ import annotations

import pytest

from clew.errors import TransformError
from clew.sessions.transforms.assembler import assemble


def test_text_is_read_as_it_is_shown() -> None:
    assert assemble("mov rax, rdi; imul rax, rsi", 0x1000).hex() == "4889f8480fafc6"
    assert assemble("nop\nnop", 7) == b"\x90\x90"
    assert assemble("", 0) == b""


def test_what_names_an_address_depends_on_where_it_is() -> None:
    near, far = (assemble("mov rax, [rip + there]\nthere = 0x402000", at) for at in (0x401000, 0x401100))
    assert (near.hex(), far.hex()) == ("488b05f90f0000", "488b05f90e0000")
    assert assemble("lea rax, [rip + 0x10]", 0x401000) == assemble("lea rax, [rip + 0x10]", 0x500000)


@pytest.mark.parametrize("text", ["frobnicate rax", "mov rax", "call no_such_function"])
def test_what_is_not_understood_is_told(text: str) -> None:
    with pytest.raises(TransformError, match=text.split()[0]):
        assemble(text, 0x1000)
