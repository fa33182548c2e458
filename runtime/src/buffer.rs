//! The shared memory seen from the target: header, status page, thread slots, filters, and where the rings are.
//!
//! Everything written here is read by the controller as it likes; nothing read here but the ring's tail, the slot's
//! state, the filters and the replies comes from it while the target runs.

mod directives;
#[cfg(test)]
pub mod fixture;
mod ring;
mod wait_limit;

pub use ring::RingWriter;
pub use wait_limit::WaitLimit;

use crate::cpu::sys::clock::ticks;
use crate::protocol::{
    self, release_reason, FilterRange, PatchRow, ProbeSite, SessionHeader, StatusPage, ThreadSlot, TrapRow, MAX_TRAPS,
};
use crate::sys::calls::{futex_wake, monotonic_ns, mremap, munmap, Error};
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

    /// Which child its thread made last; the controller takes note of it.
    fn born_child(&self, index: u32) -> &AtomicU64 {
        // SAFETY: the slot is mapped, the field aligned.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.slot(index)).born_child) }
    }

    /// A row of the table of probes.
    pub fn probe_site(&self, index: u32) -> *mut ProbeSite {
        (self.base + self.header().probes_offset + u64::from(index) * size_of::<ProbeSite>() as u64) as *mut ProbeSite
    }

    /// One of the two tables of traps.
    pub fn traps(&self, index: u64) -> *const TrapRow {
        (self.base + self.header().traps_offset + (index & 1) * MAX_TRAPS * size_of::<TrapRow>() as u64)
            as *const TrapRow
    }

    /// The table of patches.
    pub fn patches(&self) -> *const PatchRow {
        (self.base + self.header().patches_offset) as *const PatchRow
    }

    pub fn ring(&self, index: u32) -> u64 {
        self.base + self.header().rings_offset + u64::from(index) * u64::from(self.header().ring_bytes)
    }

    pub fn counters(&self, index: u32) -> u64 {
        self.base + self.header().counters_offset + u64::from(index) * self.header().counter_bytes
    }

    /// Its thread's window of calls.
    pub fn calls(&self, index: u32) -> u64 {
        self.base + self.header().calls_offset + u64::from(index) * protocol::CALL_WINDOW_BYTES
    }

    /// Whether the controller holds the process and waits for its threads to park.
    pub fn is_detaching(&self) -> bool {
        self.detaching() != 0
    }

    /// The number of the controller's attempt to detach; 0: there is none.
    pub fn detaching(&self) -> u32 {
        self.detach_ticket().load(Ordering::Acquire)
    }

    /// Why it detaches, as a `release_reason`.
    pub fn detach_reason(&self) -> u16 {
        // SAFETY: the status page is mapped; the field is an aligned u32.
        let reason = unsafe { AtomicU32::from_ptr(&raw mut (*self.status()).detach_reason) }.load(Ordering::Acquire);
        if reason == 0 {
            release_reason::DETACH
        } else {
            reason as u16
        }
    }

    /// Takes the controller's attempt `ticket` to detach for given up. There may be another one by now.
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
    pub fn ring_doorbell(&self) {
        // SAFETY: the status page is mapped, the field aligned.
        let bell = unsafe { AtomicU32::from_ptr(&raw mut (*self.status()).doorbell) };
        bell.fetch_add(1, Ordering::Release);
        futex_wake(bell.as_ptr(), 1, true);
    }

    /// Tells who waits for threads that stop at captures that there is one; or the controller.
    pub fn ring_visit_bell(&self) {
        let status = self.status();
        // SAFETY: the status page is mapped, the fields aligned.
        let (bell, hears) = unsafe {
            (AtomicU32::from_ptr(&raw mut (*status).visit_bell), AtomicU32::from_ptr(&raw mut (*status).hears_visits))
        };
        if hears.load(Ordering::Acquire) == 0 {
            self.ring_doorbell();
            return;
        }
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

    /// As `stamp_last`, unless that was done a moment before `now`, by the time stamp counter.
    pub fn stamp_now_and_then(&self, now: u64) {
        const MOMENT: u64 = 1 << 24;
        // SAFETY: the status page is mapped, the field aligned.
        let last = unsafe { AtomicU64::from_ptr(&raw mut (*self.status()).last_tsc) }.load(Ordering::Relaxed);
        if now.wrapping_sub(last) > MOMENT {
            self.stamp_last();
        }
    }

    /// Keeps a pair of time stamp counter and clock on the status page.
    pub fn stamp_last(&self) {
        self.set(|s| unsafe_field(s, core::mem::offset_of!(StatusPage, last_ns)), monotonic_ns());
        self.set(|s| unsafe_field(s, core::mem::offset_of!(StatusPage, last_tsc)), ticks());
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
