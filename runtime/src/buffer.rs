//! The shared memory seen from the target: header, status page, thread slots, rings, filters.
//!
//! Everything written here is read by the controller as it likes; nothing read here but the ring's tail, the slot's
//! state, the filters and the replies comes from it while the target runs.

mod patience;
mod standing;

pub use patience::Patience;

use crate::protocol::{self, FilterRange, SessionHeader, StatusPage, ThreadSlot};
use crate::sys::calls::{futex_wait, futex_wake, monotonic_ns, mremap, munmap, rdtsc, Error};
use crate::sys::kernel::{MREMAP_FIXED, MREMAP_MAYMOVE};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The copy of the header.
struct KeptHeader(UnsafeCell<MaybeUninit<SessionHeader>>);

// SAFETY: written while one thread runs, read by all afterwards.
unsafe impl Sync for KeptHeader {}

static HEADER: KeptHeader = KeptHeader(UnsafeCell::new(MaybeUninit::zeroed()));

/// The mapped shared memory.
#[derive(Clone, Copy)]
pub struct Shared {
    base: u64,
    size_bytes: u64,
    /// Where the first page of the file is mapped.
    anchor: u64,
}

impl Shared {
    pub const NONE: Shared = Shared { base: 0, size_bytes: 0, anchor: 0 };

    /// Checks the header against what this image was built for.
    ///
    /// # Safety
    /// `base` must be where the controller mapped `size_bytes` of shared memory, `anchor` where its file's first page.
    pub unsafe fn open(base: u64, size_bytes: u64, anchor: u64) -> Option<Shared> {
        let shared = Shared { base, size_bytes, anchor };
        // SAFETY: this is the start of the first thread.
        unsafe { shared.keep_header() };
        let header = shared.header();
        let is_ours = header.magic == protocol::MAGIC
            && header.version == protocol::VERSION
            && header.schema_hash == protocol::SCHEMA_HASH
            && header.total_bytes == size_bytes
            && header.ring_bytes.is_power_of_two();
        is_ours.then_some(shared)
    }

    pub fn base(&self) -> u64 {
        self.base
    }

    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Puts another region of the same file in the place of this one. Needs no descriptor: a mapping of shared memory is
    /// made twice by an old size of zero (mremap(2)), from the file's first page, and grown from there.
    ///
    /// # Safety
    /// No other thread of the process uses the shared memory.
    pub unsafe fn move_to_region(&self, region: u32) -> Result<(), Error> {
        let size = self.size_bytes;
        let mut missing = u64::from(region) + 1;
        let mut place = self.anchor;
        let mut old_bytes = 0;
        // All the way at once, or in steps where the address space is limited.
        while missing > 0 {
            // A step that does not start at the anchor starts at the region it came to.
            let overlap = u64::from(old_bytes != 0);
            let mut step = missing;
            let start = loop {
                // SAFETY: makes a new mapping, or moves one that this function made.
                match unsafe { mremap(place, old_bytes, (step + overlap) * size, MREMAP_MAYMOVE, 0) } {
                    Ok(start) => break start,
                    Err(error) if step == 1 => return Err(error),
                    Err(_) => step = step.div_ceil(2),
                }
            };
            missing -= step;
            let passed = (step + overlap - 1) * size;
            // SAFETY: the front of the mapping just made.
            unsafe { munmap(start, passed) };
            place = start + passed;
            old_bytes = size;
        }
        // SAFETY: the caller promises that nothing else uses what was mapped there.
        unsafe { mremap(place, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, self.base) }?;
        // SAFETY: as the caller promises.
        unsafe { self.keep_header() };
        Ok(())
    }

    /// What the header said when the region was mapped. Kept in memory of the process' own: its children reach the shared one.
    pub fn header(&self) -> &'static SessionHeader {
        // SAFETY: written while one thread runs, before it is first read.
        unsafe { (*HEADER.0.get()).assume_init_ref() }
    }

    /// The header as it is in the shared memory.
    fn shared_header(&self) -> *mut SessionHeader {
        self.base as *mut SessionHeader
    }

    /// Takes the header over.
    ///
    /// # Safety
    /// No other thread runs.
    unsafe fn keep_header(&self) {
        // SAFETY: the header is at the start of the mapping, and nobody reads the copy now.
        unsafe { (*HEADER.0.get()).write(self.shared_header().read_volatile()) };
    }

    pub fn status(&self) -> *mut StatusPage {
        (self.base + self.header().status_offset) as *mut StatusPage
    }

    pub fn slot(&self, index: u32) -> *mut ThreadSlot {
        (self.base + self.header().slots_offset + u64::from(index) * size_of::<ThreadSlot>() as u64) as *mut ThreadSlot
    }

    pub fn ring(&self, index: u32) -> u64 {
        self.base + self.header().rings_offset + u64::from(index) * u64::from(self.header().ring_bytes)
    }

    pub fn counters(&self, index: u32) -> u64 {
        self.base + self.header().counters_offset + u64::from(index) * self.header().counter_bytes
    }

    /// Whether the controller holds the process and waits for its threads to park.
    pub fn is_detaching(&self) -> bool {
        self.detaching() != 0
    }

    /// The number of the controller's wish to detach; 0: it has none.
    pub fn detaching(&self) -> u32 {
        self.detach_ticket().load(Ordering::Acquire)
    }

    /// Takes the controller's wish `ticket` to detach for given up. It may have another one by now.
    pub fn forget_detaching(&self, ticket: u32) {
        let _ = self.detach_ticket().compare_exchange(ticket, 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    fn detach_ticket(&self) -> &AtomicU32 {
        // SAFETY: the status page is mapped; the field is an aligned u32.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.status()).detach_ticket) }
    }

    /// Whether the controller is to be asked about what is mapped.
    pub fn asks_about_images(&self) -> bool {
        // SAFETY: an aligned u32 that the controller may set.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shared_header()).filters_active) }.load(Ordering::Relaxed) != 0
    }

    /// How many filter ranges there are.
    pub fn filter_count(&self) -> u32 {
        // SAFETY: the field is a u32 that the controller lets grow after it wrote the ranges below.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shared_header()).filter_count) }.load(Ordering::Acquire)
    }

    /// Whether code at `pc` is to be recorded.
    pub fn is_included(&self, pc: u64) -> bool {
        self.is_included_by(pc, self.filter_count())
    }

    /// Whether the first `count` filter ranges have code at `pc` recorded.
    pub fn is_included_by(&self, pc: u64, count: u32) -> bool {
        let header = self.header();
        let mut is_included = header.default_included != 0;
        for index in 0..u64::from(count).min(protocol::MAX_FILTER_RANGES) {
            let address = self.base + header.filters_offset + index * size_of::<FilterRange>() as u64;
            // SAFETY: the filter table is inside the mapping and holds MAX_FILTER_RANGES entries.
            let range = unsafe { (address as *const FilterRange).read_volatile() };
            if (range.start..range.end).contains(&pc) {
                is_included = range.included != 0;
            }
        }
        is_included
    }

    /// Leaves the first error's number and detail on the status page. Callable from anywhere.
    pub fn report_error(&self, code: u32, detail: [u64; 4]) {
        if self.base == 0 {
            return;
        }
        let status = self.status();
        // SAFETY: the status page is mapped; `error` is an aligned u32 that only the runtime writes.
        let error = unsafe { AtomicU32::from_ptr(&raw mut (*status).error) };
        if error.compare_exchange(0, code, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            // SAFETY: as above; only the first error gets here.
            unsafe { (&raw mut (*status).error_detail).write_volatile(detail) };
        }
    }

    /// Tells the controller that somebody waits for it.
    fn ring_doorbell(&self) {
        // SAFETY: the status page is mapped, the field aligned.
        let bell = unsafe { AtomicU32::from_ptr(&raw mut (*self.status()).doorbell) };
        bell.fetch_add(1, Ordering::Release);
        futex_wake(bell.as_ptr(), 1, true);
    }

    /// What the controller raises every second while it follows the process.
    fn heartbeat(&self) -> u32 {
        // SAFETY: the status page is mapped, the field aligned.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.status()).heartbeat) }.load(Ordering::Relaxed)
    }

    /// Adds to a u64 of the status page.
    pub fn add(&self, field: fn(*mut StatusPage) -> *mut u64, amount: u64) {
        // SAFETY: `field` projects into the mapped status page; all its u64 fields are aligned.
        unsafe { AtomicU64::from_ptr(field(self.status())) }.fetch_add(amount, Ordering::Relaxed);
    }

    /// Sets a u64 of the status page.
    pub fn set(&self, field: fn(*mut StatusPage) -> *mut u64, value: u64) {
        // SAFETY: as in `add`.
        unsafe { AtomicU64::from_ptr(field(self.status())) }.store(value, Ordering::Relaxed);
    }

    /// Keeps a pair of time stamp counter and clock on the status page.
    pub fn stamp_last(&self) {
        self.set(|s| unsafe_field(s, core::mem::offset_of!(StatusPage, last_ns)), monotonic_ns());
        self.set(|s| unsafe_field(s, core::mem::offset_of!(StatusPage, last_tsc)), rdtsc());
    }
}

/// Pointer to the u64 field of a status page at `offset`.
pub fn unsafe_field(status: *mut StatusPage, offset: usize) -> *mut u64 {
    (status as u64 + offset as u64) as *mut u64
}

/// Names a u64 field of the status page for `Shared::add` and `Shared::set`.
#[macro_export]
macro_rules! status_field {
    ($field:ident) => {
        |status| $crate::buffer::unsafe_field(status, core::mem::offset_of!($crate::protocol::StatusPage, $field))
    };
}

/// Writes records into the calling thread's ring.
pub struct RingWriter {
    pub shared: Shared,
    pub slot: u32,
    pub tid: u32,
}

impl RingWriter {
    fn slot_pointer(&self) -> *mut ThreadSlot {
        self.shared.slot(self.slot)
    }

    fn tail(&self) -> &AtomicU64 {
        // SAFETY: the slot is mapped, the field aligned.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.slot_pointer()).ring_tail) }
    }

    fn head(&self) -> &AtomicU64 {
        // SAFETY: as above.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.slot_pointer()).ring_head) }
    }

    /// Waits until `size` bytes are free. `false`: they are to be dropped.
    fn wait_for(&self, size: u64) -> bool {
        let ring_bytes = u64::from(self.shared.header().ring_bytes);
        let head = self.head().load(Ordering::Relaxed);
        let has_room = || head.wrapping_sub(self.tail().load(Ordering::Acquire)) + size <= ring_bytes;
        if has_room() {
            return true;
        }
        if self.shared.header().drop_on_full != 0 || self.shared.is_controller_gone() {
            return false;
        }
        self.shared.add(status_field!(waits), 1);
        self.shared.ring_doorbell();
        let slot = self.slot_pointer();
        // SAFETY: the slot is mapped, the fields aligned.
        let waiters = unsafe { AtomicU32::from_ptr(&raw mut (*slot).ring_waiters) };
        let tail_low = self.tail().as_ptr() as *const u32;
        let mut patience = Patience::new(self.shared);
        while !has_room() {
            let before = self.tail().load(Ordering::Acquire);
            waiters.store(1, Ordering::SeqCst);
            futex_wait(tail_low, before as u32, 100_000_000, true);
            waiters.store(0, Ordering::SeqCst);
            if self.tail().load(Ordering::Acquire) != before {
                patience = Patience::new(self.shared);
            } else if patience.is_over() {
                return false;
            }
        }
        true
    }

    /// Writes a record and its payload as continuations; `false`: they are lost, and counted so.
    pub fn write<T: Copy>(&self, record: &T, payload: &[u8]) -> bool {
        const { assert!(size_of::<T>() == protocol::RECORD_BYTES as usize) };
        let part = protocol::CONTINUATION_PAYLOAD_BYTES as usize;
        let n = payload.len().div_ceil(part) as u64;
        let size = (1 + n) * protocol::RECORD_BYTES;
        if !self.wait_for(size) {
            self.count_lost();
            return false;
        }
        let mut head = self.head().load(Ordering::Relaxed);
        self.store(head, record);
        for (index, chunk) in payload.chunks(part).enumerate() {
            head += protocol::RECORD_BYTES;
            let mut continuation = protocol::ContinuationRecord {
                kind: protocol::record_kind::CONTINUATION,
                index: index as u16,
                payload: [0; 60],
            };
            continuation.payload[..chunk.len()].copy_from_slice(chunk);
            self.store(head, &continuation);
        }
        self.head().store(head + protocol::RECORD_BYTES, Ordering::Release);
        true
    }

    /// As `write`, with the payload as it is: it takes rows of a record's size, the last one filled up with anything.
    pub fn write_rows<T: Copy>(&self, record: &T, payload: &[u8]) -> bool {
        const { assert!(size_of::<T>() == protocol::RECORD_BYTES as usize) };
        let size = protocol::RECORD_BYTES + (payload.len() as u64).next_multiple_of(protocol::RECORD_BYTES);
        if !self.wait_for(size) {
            self.count_lost();
            return false;
        }
        let head = self.head().load(Ordering::Relaxed);
        self.store(head, record);
        let ring_bytes = u64::from(self.shared.header().ring_bytes);
        let at = (head + protocol::RECORD_BYTES) & (ring_bytes - 1);
        let (first, second) = payload.split_at(payload.len().min((ring_bytes - at) as usize));
        for (part, at) in [(first, at), (second, 0)] {
            // SAFETY: inside the ring, which has room for it, and which the controller does not read before the head moves;
            // nothing of the runtime's is there.
            unsafe {
                core::ptr::copy_nonoverlapping(part.as_ptr(), (self.shared.ring(self.slot) + at) as *mut u8, part.len())
            };
        }
        self.head().store(head + size, Ordering::Release);
        true
    }

    /// One more record that the trace does not have.
    pub fn count_lost(&self) {
        self.shared.add(status_field!(lost_records), 1);
        // SAFETY: the slot is mapped, the field aligned.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.slot_pointer()).lost_records) }.fetch_add(1, Ordering::Relaxed);
    }

    fn store<T: Copy>(&self, position: u64, record: &T) {
        let mask = u64::from(self.shared.header().ring_bytes) - 1;
        let place = self.shared.ring(self.slot) + (position & mask);
        // SAFETY: records are 64 bytes, the ring a power of two of at least that: the place is inside the ring, and the
        // controller does not read it before the head moves.
        unsafe { (place as *mut T).write_volatile(*record) };
    }

    /// Asks the controller and waits for its answer; `None` when it is silent.
    pub fn request(&self, kind: u32, arguments: [u64; 4]) -> Option<u32> {
        let answer = self.ask(kind, arguments);
        if answer.is_none() {
            self.shared.add(status_field!(unanswered), 1);
        }
        answer
    }

    fn ask(&self, kind: u32, arguments: [u64; 4]) -> Option<u32> {
        self.ask_for(kind, arguments, false)
    }

    /// Asks, and waits for the answer; `waits_long`: for as long as the controller is there, however long that takes. `None`: it is
    /// not there.
    fn ask_for(&self, kind: u32, arguments: [u64; 4], waits_long: bool) -> Option<u32> {
        let slot = self.slot_pointer();
        // SAFETY: the slot is mapped and this thread's own; the fields are aligned.
        let (word, reply) =
            unsafe { (AtomicU32::from_ptr(&raw mut (*slot).request_kind), &raw const (*slot).request_reply) };
        // What was asked when the controller fell silent may still be answered: that must not be taken for this answer.
        if self.shared.is_controller_gone() || word.load(Ordering::Acquire) != 0 {
            return None;
        }
        // SAFETY: as above.
        unsafe { (&raw mut (*slot).request_arguments).write_volatile(arguments) };
        word.store(kind, Ordering::Release);
        self.shared.ring_doorbell();
        let mut patience = Patience::new(self.shared);
        while word.load(Ordering::Acquire) == kind {
            if waits_long && patience.has_heard() {
                patience = Patience::new(self.shared);
            } else if patience.is_over() {
                return None;
            }
            futex_wait(word.as_ptr(), kind, 100_000_000, true);
        }
        // SAFETY: as above; the controller wrote it before it reset the kind.
        Some(unsafe { reply.read_volatile() })
    }
}
