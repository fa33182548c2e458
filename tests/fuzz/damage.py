"""Damages the files of a trace at random, the same way for one seed.

Knows the journal's frames, to make their checksums right again: what is wrong in a frame would not be read otherwise.
"""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path
from random import Random

_FRAME = struct.Struct("<IHHIIQQII24x")
_CHECKED_BYTES = 36  # of a frame's header, in front of its checksum
_EXTREMES = (0, 1, 0x7F, 0x80, 0xFF)
_NUMBERS = ("-1", "0", "4294967296", "18446744073709551616", "1e999", "null", '"x"', "[]", "{}", "NaN", "9" * 5000)


def damage(trace: Path, seed: int) -> None:
    """Change one to three of the files of a trace."""
    random = Random(seed)
    files = sorted(path for path in trace.rglob("*") if path.is_file())
    for path in random.sample(files, min(len(files), random.choice((1, 1, 1, 2, 3)))):
        content = bytearray(path.read_bytes())
        if path.suffix == ".journal" and random.random() < 0.8:
            _damage_frames(random, content)
        elif path.suffix == ".json" and random.random() < 0.6:
            content = _damage_json(random, content)
        elif random.random() < 0.04:
            path.unlink()
            continue
        elif random.random() < 0.05:
            content = bytearray(random.choice(files).read_bytes()) if files[0].exists() else bytearray()
        else:
            _damage_bytes(random, content)
        path.write_bytes(content)


def _damage_bytes(random: Random, content: bytearray) -> None:
    for _ in range(random.choice((1, 1, 2, 8, 50))):
        if not content:
            return
        # The ends have what the rest is found by.
        near = random.choice((len(content), 64, min(len(content), 4000)))
        at = random.randrange(min(near, len(content)))
        at = at if random.random() < 0.4 else len(content) - 1 - at
        n_bytes = random.randrange(1, 64)
        match random.randrange(8):
            case 0 | 1 | 2:
                content[at] ^= 1 << random.randrange(8)
            case 3 | 4:
                content[at] = random.choice(_EXTREMES)
            case 5:
                content[at : at + n_bytes] = random.randbytes(len(content[at : at + n_bytes]))
            case 6:
                content[at:at] = random.randbytes(n_bytes)
            case _:
                del content[at : at + random.choice((n_bytes, len(content)))]


def _damage_json(random: Random, content: bytearray) -> bytearray:
    """Numbers and words become others."""
    text = content.decode()
    places = list(re.finditer(r'-?\b\d+\b|"[^"]*"|\[|\]', text))
    for place in sorted(random.sample(places, min(len(places), random.randrange(1, 4))), key=lambda m: -m.start()):
        text = text[: place.start()] + random.choice(_NUMBERS) + text[place.end() :]
    return bytearray(text.encode())


def _damage_frames(random: Random, content: bytearray) -> None:
    """Change payloads and headers of frames, whose checksums are right again then."""
    frames = []
    at = 0
    while at + _FRAME.size <= len(content):
        size_bytes = _FRAME.size + (_FRAME.unpack_from(content, at)[5] + 63) // 64 * 64
        frames.append((at, size_bytes))
        at += size_bytes
    for start, size_bytes in random.sample(frames, min(len(frames), random.choice((1, 1, 2, 5)))):
        payload_bytes = _FRAME.unpack_from(content, start)[5]
        first = start + _FRAME.size
        for _ in range(random.choice((1, 1, 3, 30))):
            if payload_bytes and random.random() < 0.85:
                at = first + random.randrange(payload_bytes)
            else:
                at = start + random.randrange(_CHECKED_BYTES)
            if random.random() < 0.5:
                content[at] ^= 1 << random.randrange(8)
            else:
                content[at] = random.choice((*_EXTREMES, *b'0123456789"{}[],-'))
        payload_bytes = min(_FRAME.unpack_from(content, start)[5], size_bytes - _FRAME.size)
        checksum = zlib.crc32(content[start : start + _CHECKED_BYTES])
        checksum = zlib.crc32(content[first : first + payload_bytes], checksum)
        struct.pack_into("<I", content, start + _CHECKED_BYTES, checksum)
