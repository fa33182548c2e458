"""Builds the stand-in for the runtime."""

from __future__ import annotations

import subprocess
from pathlib import Path

from clew.process.shared_layout import SharedLayout
from clew.protocol import _constants as constants
from clew.protocol.layout import field_offset

SOURCE = Path(__file__).with_name("fake_runtime.c")


def build_fake_runtime(
    directory: Path,
    *,
    records: int = 3,
    damage: int = 0,
    version: int = constants.VERSION,
    schema_hash: bytes = constants.SCHEMA_HASH,
) -> Path:
    """Build it into `directory`; it writes `records` signal events after its first record."""
    definitions = {
        "NOTE_TYPE": constants.NOTE_TYPE,
        "NOTE_VERSION": version,
        "NOTE_HASH": '"' + ",".join(map(str, schema_hash)) + '"',
        "RING_BYTES": SharedLayout().ring_bytes,
        "MANY": records,
        "RECORD_EVENT": int(constants.RecordKind.EVENT),
        "EVENT_THREAD_START": int(constants.EventKind.THREAD_START),
        "EVENT_SIGNAL": int(constants.EventKind.SIGNAL),
        "START_SHARED_BASE": field_offset("StartBlock", "shared_base"),
    }
    for prefix, struct, fields in (
        ("HEADER", "SessionHeader", ("status_offset", "slots_offset", "rings_offset", "counters_offset")),
        ("STATUS", "StatusPage", ("state", "error", "counters_used", "slots_used", "pause_ticket")),
        ("SLOT", "ThreadSlot", ("state", "tid", "ring_head", "ring_tail")),
    ):
        definitions |= {f"{prefix}_{field.upper()}": field_offset(struct, field) for field in fields}
    directory.mkdir(parents=True, exist_ok=True)
    header = directory / "layout.h"
    header.write_text("".join(f"#define {name} {value}\n" for name, value in definitions.items()))
    image = directory / "fake-runtime"
    options = "-O1 -nostdlib -static-pie -fPIE -ffreestanding -fno-stack-protector -fcf-protection=none"
    command = ["gcc", *options.split(), "-Wl,-z,separate-code", "-Wl,--build-id=none"]
    command += [f"-I{directory}", f"-DDAMAGE={damage}", "-o", str(image), str(SOURCE)]
    subprocess.run(command, check=True)
    return image
