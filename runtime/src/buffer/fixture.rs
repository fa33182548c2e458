//! A shared memory that no controller has, for tests of what the engine does with it. Its rings are full soon, and what does not fit
//! is dropped.

extern crate std;
use super::{RingWriter, Shared};
use crate::protocol::{self, mode, on_full, SessionHeader, PAGE_BYTES};
use crate::sys::calls::mmap;
use crate::sys::heap;
use crate::sys::kernel::{MAP_ANONYMOUS, MAP_NORESERVE, MAP_PRIVATE, PROT_READ, PROT_WRITE};
use std::sync::OnceLock;

const RING_BYTES: u64 = 0x1_0000;
const COUNTER_BYTES: u64 = 0x10_0000;
const FILTERS_OFFSET: u64 = 4 * PAGE_BYTES;
const RINGS_OFFSET: u64 = 0x4_0000;
const CALLS_OFFSET: u64 = RINGS_OFFSET + RING_BYTES + COUNTER_BYTES;
const TOTAL_BYTES: u64 = CALLS_OFFSET + protocol::CALL_WINDOW_BYTES;
const HEAP_BYTES: u64 = 64 << 30;

/// The shared memory of all tests, in mode counts, and the heap's address space.
pub fn shared() -> Shared {
    static SHARED: OnceLock<Shared> = OnceLock::new();
    *SHARED.get_or_init(|| {
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        // SAFETY: new memory, which stays.
        let [base, heap_base] = [(TOTAL_BYTES, PROT_READ | PROT_WRITE), (HEAP_BYTES, 0)]
            .map(|(size, protection)| unsafe { mmap(0, size, protection, flags) }.expect("address space"));
        heap::initialize(heap_base, HEAP_BYTES);
        let header = base as *mut SessionHeader;
        // SAFETY: the header is at the start of the mapping, which is all zeros.
        unsafe {
            (*header).magic = protocol::MAGIC;
            (*header).version = protocol::VERSION;
            (*header).schema_hash = protocol::SCHEMA_HASH;
            (*header).total_bytes = TOTAL_BYTES;
            (*header).status_offset = PAGE_BYTES;
            (*header).slots_offset = 3 * PAGE_BYTES;
            (*header).filters_offset = FILTERS_OFFSET;
            (*header).rings_offset = RINGS_OFFSET;
            (*header).ring_bytes = RING_BYTES as u32;
            (*header).counters_offset = RINGS_OFFSET + RING_BYTES;
            (*header).counter_bytes = COUNTER_BYTES;
            (*header).calls_offset = CALLS_OFFSET;
            (*header).max_threads = 1;
            (*header).mode = mode::COUNTS;
            (*header).on_full = on_full::DROP;
            (*header).default_included = 1;
            Shared::open(base, TOTAL_BYTES, base).expect("a header of this build's")
        }
    })
}

/// Writes what its first thread has to tell.
pub fn writer() -> RingWriter {
    RingWriter { shared: shared(), slot: 0, tid: 1 }
}
