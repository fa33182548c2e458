"""What is hidden is in no text, whatever it is in; and what is hidden by its name is not even taken."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

from clew.api.capture_plan import Words, inner_pieces
from clew.api.captures import capture_of
from clew.api.description import Function
from clew.api.descriptions import Descriptions
from clew.api.pieces import Pointed, Value
from clew.api.reading import load_built_in
from clew.api.redaction import Redaction, parse_pattern
from clew.api.text import call_text

SECRET = b"s3cr3t-word"
DESCRIBED = load_built_in()


def every_function(descriptions: Descriptions) -> list[Function]:
    return [*descriptions.system_calls.values(), *descriptions.functions.values()]


def redacted(redaction: Redaction) -> Descriptions:
    made = load_built_in()
    made.redact(redaction)
    return made


def values_with(data: bytes, function: Function, chance: random.Random) -> Iterator[Value]:
    """Each pointer leads to some data, and each address therein, too."""
    for parameter in function.arguments:
        if not parameter.is_pointer and parameter.coded_index is None and function.variants is None:
            yield chance.choice([0, 1, 2, 7, 4096])
            continue
        pieces = inner_pieces(parameter, function, DESCRIBED, Words(False))
        inner = {path: bytes(chance.randrange(3)) + data for path, _ in pieces}
        start = chance.choice([b"", b"\x01\x00", b"\x01\x00\x00", chance.randbytes(9)])
        yield Pointed(
            chance.choice([1, 5, 16, 1 << 40]), start + data * chance.randrange(1, 9), False, data, inner, inner, 500
        )


@pytest.mark.parametrize("seed", range(8))
def test_what_fits_a_pattern_is_in_no_call(seed: int) -> None:
    chance = random.Random(seed)
    hiding, telling = redacted(Redaction((parse_pattern(SECRET.decode()),))), 0
    for function in every_function(hiding):
        values = list(values_with(SECRET + b"\0", function, chance))
        result = chance.choice([0, 3, 100])
        told = call_text(function, values, result, hiding, limit=None, has_details=True)
        assert SECRET.decode() not in told, told
        telling += SECRET.decode() in call_text(function, values, result, DESCRIBED, limit=None, has_details=True)
    # It would have been there.
    assert telling > 150


def test_limits_cut_nothing_that_fits() -> None:
    """A secret that only begins within what is told is hidden as a whole."""
    hiding = redacted(Redaction((parse_pattern(SECRET.decode()),)))
    write = hiding.find_system_call("write")
    assert write is not None
    told = call_text(write, [1, Pointed(9, b"x" * 5 + SECRET), 16], 16, hiding, limit=8)
    assert told == 'write(1, "xxxxx[re"..., 16) = 16'


def test_what_is_hidden_by_name_is_not_taken() -> None:
    hiding = redacted(Redaction(names=("*",)))
    for function in every_function(hiding):
        capture = capture_of(function, hiding)
        assert not any(re.search(r"(str|bytes|words)\(", text) for text in capture.expressions), function.name
        told = call_text(function, [1] * len(function.arguments), 0, hiding)
        seen = hiding.with_values(function, [1] * 6)
        indexes = [one.index for one in seen.arguments]
        n_told = len(indexes if seen.told is None else set(indexes) & set(seen.told))
        assert told.count("[redacted]") == n_told, told


def test_without_data_no_buffer_is_taken() -> None:
    hiding = redacted(Redaction(has_data=False))
    for name in ("read", "write", "sendto", "recvfrom", "add_key", "pread64", "execve"):
        function = hiding.find_system_call(name)
        assert function is not None
        taken = [text for text in capture_of(function, hiding).expressions if "bytes(" in text or "str(" in text]
        # Names of files, addresses of sockets and of arguments, and numbers.
        numbers = ("arg1, 4096", ", 128)", "arg6, 4)", "arg6), 4)")
        assert all(any(one in text for one in numbers) for text in taken), taken
    # What a command's argument is a structure of is told all the same.
    option = hiding.find_system_call("setsockopt")
    assert option is not None
    assert any("bytes(arg4" in text for text in capture_of(option, hiding).expressions)


def test_patterns_fit_bytes_and_names() -> None:
    redaction = Redaction((parse_pattern("caf\u00e9|to+k"), parse_pattern("x*")))
    assert redaction.data(b"\xffcaf\xc3\xa9 tok, tk") == b"\xff[redacted] [redacted], tk"
    assert redaction.text("/a\udcff/tok") == "/a\udcff/[redacted]"
    assert redaction.command(["run", "--key=tok"]) == ["run", "--key=[redacted]"]
    assert Redaction(has_data=False).command(["run", "--key=tok"]) == ["run"]
    local = b"\x01\x00/run/tok\0"
    assert redaction.socket_address(local) == b"\x01\x00/run/[redacted]\0"
    assert redaction.socket_address(b"\x02\x00tok1234") == b"\x02\x00tok1234"


def test_secrets_are_told_only_if_they_are_asked_for() -> None:
    shown = redacted(Redaction(shows_secrets=True))
    for descriptions, is_there in ((DESCRIBED, False), (shown, True)):
        call = descriptions.find_system_call("add_key")
        assert call is not None
        told = call_text(call, [Pointed(1, b"user\0"), Pointed(1, b"k\0"), Pointed(1, SECRET), 11, 0], 1, descriptions)
        assert (SECRET.decode() in told) == is_there
        assert (
            any("arg3" in text and "bytes" in text for text in capture_of(call, descriptions).expressions) == is_there
        )
