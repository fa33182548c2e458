"""Generated from protocol/schema.toml by `make generate`; do not edit.

Everything of `clew.protocol._constants`, and a numpy dtype for each struct, with explicit offsets.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clew.protocol._constants import (
    CONTAINER_MAGIC,
    CONTAINER_VERSION,
    CONTINUATION_PAYLOAD_BYTES,
    CONTINUATION_RECORD_BYTES,
    CONTROL_BLOCK_BYTES,
    DETACH_CODE,
    DYNAMIC_EDGE_RECORD_BYTES,
    EVENT_RECORD_BYTES,
    FILTER_RANGE_BYTES,
    FRAGMENT_RECORD_BYTES,
    FULL_WAIT_SECONDS,
    IMAGE_RECORD_BYTES,
    INVALIDATE_RECORD_BYTES,
    LAYOUTS,
    LINK_RECORD_BYTES,
    LONGEST_WAIT_SECONDS,
    MAGIC,
    MAX_BUSY_LIMIT,
    MAX_COUNTER_BYTES,
    MAX_FILTER_RANGES,
    MAX_FRAGMENT_BYTES,
    MAX_FRAGMENT_INSTRUCTIONS,
    MAX_PATH_BYTES,
    NOTE_NAME,
    NOTE_TYPE,
    PATH_BUFFER_BYTES,
    PATH_CHUNK_RECORD_BYTES,
    PATH_DECISIONS_CELL,
    PATH_EVENT_RECORD_BYTES,
    PATH_LOST_CELL,
    PATH_OTHER_DECISIONS_CELL,
    PATH_START,
    PATH_SURPRISES_CELL,
    PATH_SURPRISES_LEFT_CELL,
    PATH_SURPRISES_OFFSET,
    PATH_SYMBOLS_CELL,
    PATH_SYMBOLS_LEFT_CELL,
    PATH_SYMBOLS_OFFSET,
    PATH_WINDOW_BYTES,
    RECORD_BYTES,
    REGION_BLOCKS,
    REGION_BUFFER_BYTES,
    REGION_CHUNK_RECORD_BYTES,
    REGION_KIND_SHIFT,
    REGION_NUMBERS_CELL,
    REGION_NUMBERS_LEFT_CELL,
    REGION_NUMBERS_OFFSET,
    REGION_WINDOW_BYTES,
    REGION_WORDS_CELL,
    REGION_WORDS_LEFT_CELL,
    REGION_WORDS_OFFSET,
    SCHEMA_HASH,
    SESSION_HEADER_BYTES,
    START_BLOCK_BYTES,
    STATUS_PAGE_BYTES,
    THREAD_COUNTERS_OFFSET,
    THREAD_SLOT_BYTES,
    THREAD_STATE_BYTES,
    THREAD_STRIDE_BYTES,
    UNMAP_RECORD_BYTES,
    VERSION,
    EdgeKind,
    EndKind,
    ErrorCode,
    EventKind,
    ExitKind,
    Mode,
    PathEventKind,
    PathStream,
    RecordKind,
    RegionWord,
    ReleaseReason,
    RequestKind,
    RuntimeState,
    SlotState,
    Stage,
)

__all__ = [
    "CONTAINER_MAGIC",
    "CONTAINER_VERSION",
    "CONTINUATION_PAYLOAD_BYTES",
    "CONTINUATION_RECORD",
    "CONTINUATION_RECORD_BYTES",
    "CONTROL_BLOCK",
    "CONTROL_BLOCK_BYTES",
    "DETACH_CODE",
    "DYNAMIC_EDGE_RECORD",
    "DYNAMIC_EDGE_RECORD_BYTES",
    "EVENT_RECORD",
    "EVENT_RECORD_BYTES",
    "FILTER_RANGE",
    "FILTER_RANGE_BYTES",
    "FRAGMENT_RECORD",
    "FRAGMENT_RECORD_BYTES",
    "FULL_WAIT_SECONDS",
    "IMAGE_RECORD",
    "IMAGE_RECORD_BYTES",
    "INVALIDATE_RECORD",
    "INVALIDATE_RECORD_BYTES",
    "LAYOUTS",
    "LINK_RECORD",
    "LINK_RECORD_BYTES",
    "LONGEST_WAIT_SECONDS",
    "MAGIC",
    "MAX_BUSY_LIMIT",
    "MAX_COUNTER_BYTES",
    "MAX_FILTER_RANGES",
    "MAX_FRAGMENT_BYTES",
    "MAX_FRAGMENT_INSTRUCTIONS",
    "MAX_PATH_BYTES",
    "NOTE_NAME",
    "NOTE_TYPE",
    "PATH_BUFFER_BYTES",
    "PATH_CHUNK_RECORD",
    "PATH_CHUNK_RECORD_BYTES",
    "PATH_DECISIONS_CELL",
    "PATH_EVENT_RECORD",
    "PATH_EVENT_RECORD_BYTES",
    "PATH_LOST_CELL",
    "PATH_OTHER_DECISIONS_CELL",
    "PATH_START",
    "PATH_SURPRISES_CELL",
    "PATH_SURPRISES_LEFT_CELL",
    "PATH_SURPRISES_OFFSET",
    "PATH_SYMBOLS_CELL",
    "PATH_SYMBOLS_LEFT_CELL",
    "PATH_SYMBOLS_OFFSET",
    "PATH_WINDOW_BYTES",
    "RECORD_BYTES",
    "RECORD_DTYPES",
    "REGION_BLOCKS",
    "REGION_BUFFER_BYTES",
    "REGION_CHUNK_RECORD",
    "REGION_CHUNK_RECORD_BYTES",
    "REGION_KIND_SHIFT",
    "REGION_NUMBERS_CELL",
    "REGION_NUMBERS_LEFT_CELL",
    "REGION_NUMBERS_OFFSET",
    "REGION_WINDOW_BYTES",
    "REGION_WORDS_CELL",
    "REGION_WORDS_LEFT_CELL",
    "REGION_WORDS_OFFSET",
    "SCHEMA_HASH",
    "SESSION_HEADER",
    "SESSION_HEADER_BYTES",
    "START_BLOCK",
    "START_BLOCK_BYTES",
    "STATUS_PAGE",
    "STATUS_PAGE_BYTES",
    "THREAD_COUNTERS_OFFSET",
    "THREAD_SLOT",
    "THREAD_SLOT_BYTES",
    "THREAD_STATE",
    "THREAD_STATE_BYTES",
    "THREAD_STRIDE_BYTES",
    "UNMAP_RECORD",
    "UNMAP_RECORD_BYTES",
    "VERSION",
    "EdgeKind",
    "EndKind",
    "ErrorCode",
    "EventKind",
    "ExitKind",
    "Mode",
    "PathEventKind",
    "PathStream",
    "RecordKind",
    "RegionWord",
    "ReleaseReason",
    "RequestKind",
    "RuntimeState",
    "SlotState",
    "Stage",
]

SESSION_HEADER: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": [
            "magic",
            "version",
            "header_bytes",
            "schema_hash",
            "total_bytes",
            "status_offset",
            "slots_offset",
            "rings_offset",
            "counters_offset",
            "filters_offset",
            "counter_bytes",
            "ring_bytes",
            "max_threads",
            "mode",
            "drop_on_full",
            "controller_pid",
            "filters_active",
            "default_included",
            "filter_count",
            "relayout_executions",
            "follows",
            "region",
            "reaper_pid",
            "busy_limit",
            "reserved",
        ],
        "formats": [
            "<u8",
            "<u4",
            "<u4",
            ("<u1", (32,)),
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u4",
            "<u4",
            "<u4",
            "<u4",
            "<u4",
            "<u4",
            "<u4",
            "<u4",
            "<u4",
            "<u4",
            "<u4",
            "<u4",
            "<u4",
            ("<u1", (100,)),
        ],
        "offsets": [
            0,
            8,
            12,
            16,
            48,
            56,
            64,
            72,
            80,
            88,
            96,
            104,
            108,
            112,
            116,
            120,
            124,
            128,
            132,
            136,
            140,
            144,
            148,
            152,
            156,
        ],
        "itemsize": 256,
    }
)
"""Offset 0 of the shared memory, a region of a file that a process and its forks' children share. The runtime refuses a
magic, version or hash that is not its own.
"""

FILTER_RANGE: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": ["start", "end", "included"],
        "formats": ["<u8", "<u8", "<u8"],
        "offsets": [0, 8, 16],
        "itemsize": 24,
    }
)
"""Code from start up to end is recorded or not; of several ranges that hold an address the last counts."""

STATUS_PAGE: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": [
            "state",
            "error",
            "error_detail",
            "counters_used",
            "start_tsc",
            "start_ns",
            "last_tsc",
            "last_ns",
            "lost_records",
            "lost_threads",
            "uncounted_fragments",
            "waits",
            "fragments",
            "instructions_translated",
            "cache_bytes",
            "links",
            "unlinks",
            "invalidated",
            "entries_exit",
            "entries_indirect",
            "entries_syscall",
            "entries_signal",
            "dynamic_edges",
            "heap_bytes",
            "slabs",
            "pause_ticket",
            "detach_ticket",
            "relaid",
            "doorbell",
            "heartbeat",
            "unanswered",
            "slots_used",
            "trusted_pages",
            "trust_ends",
            "table_misses",
            "untagged_fragments",
            "reserved",
        ],
        "formats": [
            "<u4",
            "<u4",
            ("<u8", (4,)),
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u4",
            "<u4",
            "<u8",
            "<u4",
            "<u4",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            ("<u1", (3808,)),
        ],
        "offsets": [
            0,
            4,
            8,
            40,
            48,
            56,
            64,
            72,
            80,
            88,
            96,
            104,
            112,
            120,
            128,
            136,
            144,
            152,
            160,
            168,
            176,
            184,
            192,
            200,
            208,
            216,
            220,
            224,
            232,
            236,
            240,
            248,
            256,
            264,
            272,
            280,
            288,
        ],
        "itemsize": 4096,
    }
)
"""What the runtime says of itself. Read by the controller as untrusted input."""

THREAD_SLOT: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": [
            "state",
            "tid",
            "ring_head",
            "start_tsc",
            "end_tsc",
            "end_kind",
            "parent_tid",
            "lost_records",
            "name",
            "ring_tail",
            "ring_waiters",
            "reserved_controller",
            "request_kind",
            "request_reply",
            "request_arguments",
            "reserved",
        ],
        "formats": [
            "<u4",
            "<u4",
            "<u8",
            "<u8",
            "<u8",
            "<u4",
            "<u4",
            "<u8",
            ("<u1", (16,)),
            "<u8",
            "<u4",
            ("<u1", (52,)),
            "<u4",
            "<u4",
            ("<u8", (4,)),
            ("<u1", (88,)),
        ],
        "offsets": [0, 4, 8, 16, 24, 32, 36, 40, 48, 64, 72, 76, 128, 132, 136, 168],
        "itemsize": 256,
    }
)
"""One thread's row. The ring's bytes from ring_tail up to ring_head (both count all bytes ever, modulo ring_bytes they
are places) are whole records.
"""

START_BLOCK: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": [
            "shared_base",
            "shared_bytes",
            "image_base",
            "image_bytes",
            "private_base",
            "private_bytes",
            "heap_base",
            "heap_bytes",
            "registers",
            "rip",
            "rflags",
            "fs_base",
            "gs_base",
            "range_count",
            "has_fsgsbase",
            "anchor_base",
            "control_block",
            "reserved",
            "ranges",
        ],
        "formats": [
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            ("<u8", (16,)),
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u4",
            "<u4",
            "<u8",
            "<u8",
            ("<u1", (8,)),
            ("<u8", (480,)),
        ],
        "offsets": [0, 8, 16, 24, 32, 40, 48, 56, 64, 192, 200, 208, 216, 224, 228, 232, 240, 248, 256],
        "itemsize": 4096,
    }
)
"""Written by the controller into the target's private memory before the runtime runs; its address is in rdi at the
image's entry.
"""

CONTROL_BLOCK: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": [
            "threads",
            "thread_count",
            "stage",
            "attach_pc",
            "parked_pc",
            "leave_pc",
            "syscall_return_pc",
            "syscall_again_pc",
            "gates_start",
            "gates_end",
            "pending_offset",
            "call_code_offset",
            "signal_stack_offset",
            "tid_offset",
            "call_pc",
            "trap_action",
            "standing_pc",
            "reserved_more",
        ],
        "formats": [
            "<u8",
            "<u4",
            "<u4",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u4",
            "<u4",
            "<u4",
            "<u4",
            "<u8",
            "<u8",
            "<u8",
            ("<u1", (16,)),
        ],
        "offsets": [0, 8, 12, 16, 24, 32, 40, 48, 56, 64, 72, 76, 80, 84, 88, 96, 104, 112],
        "itemsize": 128,
    }
)
"""What entering a process that runs already, and leaving any, takes. In the target's private memory: the controller
writes the threads, the runtime adds the fields from attach_pc on before any thread enters it.
"""

THREAD_STATE: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": [
            "registers",
            "rip",
            "rflags",
            "gs_base",
            "mask",
            "context",
            "stack_top",
            "tid",
            "call_code",
            "rseq_area",
            "rseq_signature",
            "reserved",
        ],
        "formats": [
            ("<u8", (16,)),
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u8",
            "<u4",
            "<u4",
            "<u8",
            "<u4",
            ("<u1", (60,)),
        ],
        "offsets": [0, 128, 136, 144, 152, 160, 168, 176, 180, 184, 192, 196],
        "itemsize": 256,
    }
)
"""A thread's own state outside the runtime: given by the controller when it enters, by the runtime when it has parked.
Vector state is in the processor.
"""

FRAGMENT_RECORD: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": [
            "kind",
            "continuations",
            "tid",
            "app_pc",
            "target_pc",
            "tsc",
            "fragment_id",
            "counter_index",
            "code_version",
            "size_bytes",
            "n_instructions",
            "exit_kind",
            "flags",
            "reserved",
            "region_block",
            "reserved_more",
        ],
        "formats": [
            "<u2",
            "<u2",
            "<u4",
            "<u8",
            "<u8",
            "<u8",
            "<u4",
            "<u4",
            "<u4",
            "<u2",
            "<u2",
            "<u1",
            "<u1",
            ("<u1", (2,)),
            "<u4",
            ("<u1", (8,)),
        ],
        "offsets": [0, 2, 4, 8, 16, 24, 32, 36, 40, 44, 46, 48, 49, 50, 52, 56],
        "itemsize": 64,
    }
)
"""A fragment was translated, because execution came to it. Continuations carry size_bytes of code, then a bit for each
byte of code (least significant first): an instruction starts here.
"""

CONTINUATION_RECORD: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": ["kind", "index", "payload"],
        "formats": ["<u2", "<u2", ("<u1", (60,))],
        "offsets": [0, 2, 4],
        "itemsize": 64,
    }
)
"""More payload of the record before it."""

DYNAMIC_EDGE_RECORD: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": [
            "kind",
            "continuations",
            "tid",
            "source_pc",
            "target_pc",
            "tsc",
            "source_fragment_id",
            "target_fragment_id",
            "counter_index",
            "edge_kind",
            "reserved",
            "symbol",
            "reserved_more",
        ],
        "formats": [
            "<u2",
            "<u2",
            "<u4",
            "<u8",
            "<u8",
            "<u8",
            "<u4",
            "<u4",
            "<u4",
            "<u1",
            ("<u1", (1,)),
            "<u2",
            ("<u1", (16,)),
        ],
        "offsets": [0, 2, 4, 8, 16, 24, 32, 36, 40, 44, 45, 46, 48],
        "itemsize": 64,
    }
)
"""A pair of source and target was seen for the first time. Its executions are the counter's, of all threads."""

LINK_RECORD: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": [
            "kind",
            "continuations",
            "tid",
            "source_pc",
            "target_pc",
            "tsc",
            "source_fragment_id",
            "target_fragment_id",
            "edge_kind",
            "reserved",
        ],
        "formats": ["<u2", "<u2", "<u4", "<u8", "<u8", "<u8", "<u4", "<u4", "<u1", ("<u1", (23,))],
        "offsets": [0, 2, 4, 8, 16, 24, 32, 36, 40, 41],
        "itemsize": 64,
    }
)
"""Coverage only: an exit was taken for the first time."""

IMAGE_RECORD: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": [
            "kind",
            "continuations",
            "tid",
            "start",
            "size_bytes",
            "tsc",
            "file_offset",
            "device",
            "inode",
            "protection",
            "path_bytes",
        ],
        "formats": ["<u2", "<u2", "<u4", "<u8", "<u8", "<u8", "<u8", "<u8", "<u8", "<u4", "<u4"],
        "offsets": [0, 2, 4, 8, 16, 24, 32, 40, 48, 56, 60],
        "itemsize": 64,
    }
)
"""The program mapped executable memory. Continuations carry path_bytes of the file's path as /proc/self/fd names it."""

UNMAP_RECORD: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": ["kind", "continuations", "tid", "start", "size_bytes", "tsc", "reserved"],
        "formats": ["<u2", "<u2", "<u4", "<u8", "<u8", "<u8", ("<u1", (32,))],
        "offsets": [0, 2, 4, 8, 16, 24, 32],
        "itemsize": 64,
    }
)
"""Memory that held code went, or lost its executable right."""

EVENT_RECORD: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": ["kind", "continuations", "tid", "app_pc", "a", "tsc", "b", "c", "event_kind", "reserved"],
        "formats": ["<u2", "<u2", "<u4", "<u8", "<u8", "<u8", "<u8", "<u8", "<u2", ("<u1", (14,))],
        "offsets": [0, 2, 4, 8, 16, 24, 32, 40, 48, 50],
        "itemsize": 64,
    }
)
"""Something happened."""

INVALIDATE_RECORD: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": ["kind", "continuations", "tid", "app_pc", "reserved_target", "tsc", "fragment_id", "reserved"],
        "formats": ["<u2", "<u2", "<u4", "<u8", "<u8", "<u8", "<u4", ("<u1", (28,))],
        "offsets": [0, 2, 4, 8, 16, 24, 32, 36],
        "itemsize": 64,
    }
)
"""A fragment is no longer used: its code went or changed."""

PATH_CHUNK_RECORD: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": ["kind", "rows", "tid", "tsc", "start", "size_bytes", "stream", "reserved"],
        "formats": ["<u2", "<u2", "<u4", "<u8", "<u8", "<u4", "<u2", ("<u1", (34,))],
        "offsets": [0, 2, 4, 8, 16, 24, 28, 30],
        "itemsize": 64,
    }
)
"""A piece of one of the streams of a thread's path (mode full). It is in the rows behind the record, as it is. A stream
whose start is not where the one before ended has lost what lies between.
"""

PATH_EVENT_RECORD: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": [
            "kind",
            "event_kind",
            "tid",
            "tsc",
            "surprise_bytes",
            "decisions",
            "symbol_bytes",
            "depth",
            "pc",
            "value",
        ],
        "formats": ["<u2", "<u2", "<u4", "<u8", "<u8", "<u8", "<u8", "<u8", "<u8", "<u8"],
        "offsets": [0, 2, 4, 8, 16, 24, 32, 40, 48, 56],
        "itemsize": 64,
    }
)
"""What a thread's path cannot imply, and where in it that is (mode full)."""

REGION_CHUNK_RECORD: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": ["kind", "continuations", "tid", "tsc", "start", "size_bytes", "stream", "reserved"],
        "formats": ["<u2", "<u2", "<u4", "<u8", "<u8", "<u4", "<u2", ("<u1", (34,))],
        "offsets": [0, 2, 4, 8, 16, 24, 28, 30],
        "itemsize": 64,
    }
)
"""A piece of a thread's tags (mode region): of the words or of the numbers that go with them. Continuations carry
size_bytes of it.
"""

RECORD_DTYPES: Final[dict[RecordKind, np.dtype[np.void]]] = {
    RecordKind.FRAGMENT: FRAGMENT_RECORD,
    RecordKind.CONTINUATION: CONTINUATION_RECORD,
    RecordKind.DYNAMIC_EDGE: DYNAMIC_EDGE_RECORD,
    RecordKind.LINK: LINK_RECORD,
    RecordKind.IMAGE: IMAGE_RECORD,
    RecordKind.UNMAP: UNMAP_RECORD,
    RecordKind.EVENT: EVENT_RECORD,
    RecordKind.INVALIDATE: INVALIDATE_RECORD,
    RecordKind.PATH_CHUNK: PATH_CHUNK_RECORD,
    RecordKind.PATH_EVENT: PATH_EVENT_RECORD,
    RecordKind.REGION_CHUNK: REGION_CHUNK_RECORD,
}
"""The dtype of each kind of record."""
