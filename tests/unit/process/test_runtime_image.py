"""Reading of the runtime's image: a real one, built by the linker, and images that break each rule."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.address import RemoteAddress
from clew.errors import RuntimeImageError
from clew.process import runtime_image
from clew.process.linux import PROT_EXEC, PROT_WRITE
from clew.process.runtime_image import load_runtime_image, parse_runtime_image
from clew.process.shared_layout import PAGE_BYTES
from tests.unit.process.fake_runtime import build_fake_runtime


def test_a_linked_image(fake_runtime: Path) -> None:
    image = load_runtime_image(fake_runtime)
    assert 0 < image.entry_offset < len(image.content) <= image.memory_bytes
    assert image.memory_bytes % PAGE_BYTES == 0
    assert any(segment.protection & PROT_EXEC for segment in image.segments)
    assert not any(segment.protection & PROT_EXEC and segment.protection & PROT_WRITE for segment in image.segments)
    assert image.relocations
    base = RemoteAddress(0x2A0000000000)
    relocated = image.relocated(base)
    for offset, addend in image.relocations:
        assert struct.unpack_from("<Q", relocated, offset)[0] == base + addend


def test_another_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeImageError, match="another protocol"):
        load_runtime_image(build_fake_runtime(tmp_path / "version", version=99))
    with pytest.raises(RuntimeImageError, match="another protocol"):
        load_runtime_image(build_fake_runtime(tmp_path / "hash", schema_hash=bytes(32)))


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeImageError, match="no such file"):
        load_runtime_image(tmp_path / "none")


def test_the_environment_overrides_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_RUNTIME", "/else/where")
    assert runtime_image.default_runtime_path() == Path("/else/where")
    monkeypatch.delenv("CLEW_RUNTIME")
    assert runtime_image.default_runtime_path().parts[-2:] == ("_runtime", "clew-runtime-x86_64")


def test_an_ordinary_program_is_refused() -> None:
    with pytest.raises(RuntimeImageError):
        load_runtime_image(Path("/bin/true"))


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_damaged_images_are_refused_or_parsed(fake_runtime: Path, data: st.DataObject) -> None:
    content = bytearray(fake_runtime.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, 1023))] = data.draw(st.integers(0, 255))
    end = data.draw(st.one_of(st.none(), st.integers(0, len(content))))
    try:
        image = parse_runtime_image(Path("image"), bytes(content[:end]))
    except RuntimeImageError:
        return
    assert image.memory_bytes <= runtime_image.MAX_IMAGE_BYTES
    image.relocated(RemoteAddress(0))


def test_relr_table() -> None:
    # An address, then a bitmap: bits 0 and 2 of the words that follow it.
    table = struct.pack("<QQQ", 0x1000, 0b1011, 1 << 63 | 1)
    first_bitmap = 0x1008
    second_bitmap = first_bitmap + 63 * 8
    assert runtime_image._relr_offsets(table) == [0x1000, first_bitmap, first_bitmap + 16, second_bitmap + 62 * 8]
