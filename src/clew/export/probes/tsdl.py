"""The metadata of a CTF 1.8 trace, in its language (TSDL), with the declarations that LTTng-UST 2.13 makes.

Pure. What follows from what: CTF 1.8 (diamon.org/ctf/v1.8.3), and the metadata of a trace that LTTng-UST 2.13.5 wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from clew.export.probes.ctf_layout import CtfStruct, Form, Member, Number
from clew.export.probes.identity import Clock

__all__ = ["OWN_CONTEXTS", "SIGNATURE", "event_text", "preamble_text", "stream_text", "time_text"]

SIGNATURE: Final = "/* CTF 1.8 */"
OWN_CONTEXTS: Final = ("vpid", "vtid", "procname")
"""What all events have, of LTTng's contexts: `procname` in PROCNAME_BYTES."""
PROCNAME_BYTES: Final = 17
_LOGLEVEL: Final = 13
"""TRACE_DEBUG_LINE, which LTTng gives to those that say nothing of one."""

_ALIASES: Final = """\
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = false; } := unsigned long;
typealias integer { size = 5; align = 1; signed = false; } := uint5_t;
typealias integer { size = 27; align = 1; signed = false; } := uint27_t;
"""

_PACKET_HEADER: Final = """\
\tpacket.header := struct {
\t\tuint32_t magic;
\t\tuint8_t  uuid[16];
\t\tuint32_t stream_id;
\t\tuint64_t stream_instance_id;
\t};
"""

_PACKET_CONTEXT: Final = """\
struct packet_context {
\tuint64_clock_monotonic_t timestamp_begin;
\tuint64_clock_monotonic_t timestamp_end;
\tuint64_t content_size;
\tuint64_t packet_size;
\tuint64_t packet_seq_num;
\tunsigned long events_discarded;
\tuint32_t cpu_id;
};
"""


def preamble_text(uuid: str, clock: Clock, env: Mapping[str, str | bytes | int]) -> str:
    """What comes first: what is true of all streams. `env` are facts about the trace, for readers."""
    trace = f'trace {{\n\tmajor = 1;\n\tminor = 8;\n\tuuid = "{uuid}";\n\tbyte_order = le;\n' + _PACKET_HEADER + "};\n"
    facts = "".join(f"\t{name} = {_env_text(value)};\n" for name, value in env.items())
    clock_text = (
        f'clock {{\n\tname = "monotonic";\n\tuuid = "{clock.boot_id}";\n\tdescription = "Monotonic Clock";\n'
        f"\tfreq = 1000000000;\n\toffset = {clock.offset_ns};\n}};\n"
    )
    parts = [SIGNATURE, _ALIASES, trace, f"env {{\n{facts}}};\n", clock_text, *_clock_aliases(), _PACKET_CONTEXT]
    return "\n".join([*parts, _header_text("compact", "uint5_t", 31, "uint27"), _HEADER_LARGE])


def _clock_aliases() -> Iterator[str]:
    for bits in (27, 32, 64):
        align = 1 if bits == 27 else 8
        yield (
            f"typealias integer {{\n\tsize = {bits}; align = {align}; signed = false;\n"
            f"\tmap = clock.monotonic.value;\n}} := uint{bits}_clock_monotonic_t;\n"
        )


def _header_text(name: str, number: str, extended: int, time: str) -> str:
    return (
        f"struct event_header_{name} {{\n"
        f"\tenum : {number} {{ compact = 0 ... {extended - 1}, extended = {extended} }} id;\n"
        f"\tvariant <id> {{\n\t\tstruct {{\n\t\t\t{time}_clock_monotonic_t timestamp;\n\t\t}} compact;\n"
        "\t\tstruct {\n\t\t\tuint32_t id;\n\t\t\tuint64_clock_monotonic_t timestamp;\n\t\t} extended;\n\t} v;\n"
        "} align(8);\n"
    )


_HEADER_LARGE: Final = _header_text("large", "uint16_t", 65535, "uint32")


def stream_text(stream_id: int, contexts: CtfStruct) -> str:
    """A class of streams, whose events all have these contexts."""
    own = [
        f"{_integer(Number('<i4'))} _vpid;",
        f"{_integer(Number('<i4'))} _vtid;",
        f"{_integer(Number('<i1'), 'UTF8')} _procname[{PROCNAME_BYTES}];",
    ]
    members = "".join(f"\t\t{line}\n" for line in [*own, *_member_lines(contexts)])
    return (
        f"\nstream {{\n\tid = {stream_id};\n\tevent.header := struct event_header_large;\n"
        f"\tpacket.context := struct packet_context;\n\tevent.context := struct {{\n{members}\t}};\n}};\n"
    )


def event_text(event_id: int, stream_id: int, name: str, fields: CtfStruct) -> str:
    """A type of events of a stream; `name` is fit to stand between quotes."""
    members = "".join(f"\t\t{line}\n" for line in _member_lines(fields))
    return (
        f'\nevent {{\n\tname = "{name}";\n\tid = {event_id};\n\tstream_id = {stream_id};\n'
        f"\tloglevel = {_LOGLEVEL};\n\tfields := struct {{\n{members}\t}};\n}};\n"
    )


def _member_lines(struct: CtfStruct) -> Iterator[str]:
    for member in struct.members:
        yield from _declarations(member)
    if struct.missing:
        yield f"string {struct.missing};"


def _declarations(member: Member) -> Iterator[str]:
    if member.form is Form.STRING:
        yield f"string {member.name};"
    elif member.form is Form.SEQUENCE:
        yield f"{_integer(Number('<u4'))} {member.length_name};"
        yield f"{_integer(member.number)} {member.name}[ {member.length_name} ];"
    elif member.form is Form.STRUCT:
        inner = " ".join(f"{_integer(member.number)} {name};" for name in member.names)
        yield f"struct {{ {inner} }} {member.name};"
    else:
        yield f"{_integer(member.number)} {member.name};"


def _integer(number: Number, encoding: str = "none") -> str:
    kind, size = number.dtype[1], 8 * int(number.dtype[2:])
    if kind == "f":
        exponent = 11 if size == 64 else 8
        return f"floating_point {{ exp_dig = {exponent}; mant_dig = {size - exponent}; align = 8; }}"
    signed = int(kind == "i")
    return f"integer {{ size = {size}; align = 8; signed = {signed}; encoding = {encoding}; base = {number.base}; }}"


def _env_text(value: str | bytes | int) -> str:
    """A value of `env`. In quotes all but printable ASCII is written as C writes it, in octal digits."""
    if isinstance(value, int):
        return str(value)
    raw = value.encode() if isinstance(value, str) else value
    safe = (chr(one) if 0x20 <= one < 0x7F and one not in b'"\\' else f"\\{one:03o}" for one in raw.split(b"\0")[0])
    return f'"{"".join(safe)}"'


def time_text(time_ns: int) -> str:
    """A time as LTTng has it in `env`."""
    return datetime.fromtimestamp(time_ns // 1_000_000_000, UTC).strftime("%Y%m%dT%H%M%S%z")
