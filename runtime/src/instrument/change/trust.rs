//! Code that the program may write and seldom does: protected, instead of compared at each execution.
//!
//! Programs that make code keep all of it writable. A fragment of such code that was compared often enough and never differed
//! makes its pages *trusted*: the runtime takes the right to write from them, and translates what they hold as it does other
//! code. A write to them faults, and the signal handler sends the thread to the dispatcher (dispatch/apart/written.rs): the page
//! is compared again from then on, and the write is done. Each time it takes twice as many executions until it is trusted again.
//!
//! The kernel writes by no instruction, and would fail: memory that system calls are given is not trusted, nor are stacks.

use crate::arch::code_span;
use crate::buffer::RingWriter;
use crate::cache::table::PcTable;
use crate::context::addresses::AppPc;
use crate::context::numbers::FragmentId;
use crate::cpu::sys::number;
use crate::decode::ranges::{Range, Ranges};
use crate::decode::trusted::{page_of, page_start};
use crate::instrument::Engine;
use crate::protocol::PAGE_BYTES;
use crate::sys::calls::{check, syscall};
use crate::sys::kernel::{PROT_EXEC, PROT_READ, PROT_WRITE};
use core::sync::atomic::{fence, AtomicBool, Ordering};

/// Memory can be mapped in so many pieces (vm.max_map_count), and is left some.
const MAX_PAGES: usize = 8192;
/// It takes so many times fewer executions to be trusted than to be laid out anew: being compared costs more.
const TRUST_SHARE: u32 = 64;
/// Of a cell of 16 bits.
const MAX_EXECUTIONS: u32 = 1 << 15;
const ALL: u64 = PROT_READ | PROT_WRITE | PROT_EXEC;

/// Whether any page may be trusted: then no thread may have SIGSEGV blocked.
static IS_ACTIVE: AtomicBool = AtomicBool::new(false);

/// Whether SIGSEGV must come to every thread. Reachable from the signal handler.
pub fn is_active() -> bool {
    fence(Ordering::SeqCst);
    IS_ACTIVE.load(Ordering::Relaxed)
}

/// From now on it must. A thread whose signal handler blocks it says so first, and then asks `is_active`; here it is the other way
/// round, so that one of both sees the other.
fn announce() {
    IS_ACTIVE.store(true, Ordering::Relaxed);
    fence(Ordering::SeqCst);
}

/// Sets a page's protection; `false` if the kernel does not.
fn protect(page: u64, protection: u64) -> bool {
    let call = [page_start(page).raw(), PAGE_BYTES, protection, 0, 0, 0];
    // SAFETY: only takes away and gives back what the program may do with its own page.
    check(unsafe { syscall(number::MPROTECT, call) }).is_ok()
}

/// What is known about trusting beside the pages that are trusted (decode/trusted.rs).
pub struct Trust {
    /// How often a page was written while it was trusted.
    writes: PcTable<u64, u32>,
    /// Memory that system calls were given.
    pub kernels: Ranges,
    /// How often pages were trusted no more.
    pub n_ends: u64,
    n_suspended: u32,
}

impl Trust {
    pub const fn new() -> Trust {
        Trust { writes: PcTable::new(), kernels: Ranges::new(), n_ends: 0, n_suspended: 0 }
    }
}

impl Engine {
    /// Whether code that is compared counts how often it was.
    pub fn counts_trust(&self) -> bool {
        self.shared.header().relayout_executions != 0 && !self.ranges.are_writable()
    }

    /// So many executions without a change it takes to trust the code at `pc`.
    pub fn executions_to_trust(&self, pc: AppPc) -> u16 {
        let n_writes = self.trust.writes.find(page_of(pc)).unwrap_or(0);
        let executions = (self.shared.header().relayout_executions / TRUST_SHARE).max(2);
        (executions << n_writes.min(15)).min(MAX_EXECUTIONS) as u16
    }

    /// Trusts the pages of a fragment that was compared often, if they can be and `can_fault` says so of the memory around them,
    /// so that what they hold is translated again.
    pub fn trust_pages_of(&mut self, writer: &RingWriter, id: FragmentId, can_fault: impl Fn(Range) -> bool) {
        let fragment = *self.cache.fragment(id);
        if self.trust.n_suspended != 0 || !self.counts_trust() {
            return;
        }
        announce();
        for page in page_of(fragment.app_pc)..=page_of(fragment.end() - 1) {
            if !self.ranges.trusted.contains(page)
                && self.can_be_trusted(page, &can_fault)
                && protect(page, PROT_READ | PROT_EXEC)
            {
                self.ranges.trusted.insert(page);
                self.shared.add(crate::status_field!(trusted_pages), 1);
                self.translate_again(writer, page, true);
            }
        }
    }

    fn can_be_trusted(&self, page: u64, can_fault: impl Fn(Range) -> bool) -> bool {
        let start = page_start(page);
        let Some(range) = self.ranges.find(start) else {
            return false;
        };
        let is_plain = range.protection & ALL == ALL && range.end >= start + PAGE_BYTES;
        let is_written_elsewhere = self.aliases.intersects(start, start + PAGE_BYTES)
            || self.trust.kernels.intersects(start, start + PAGE_BYTES);
        is_plain && !is_written_elsewhere && self.ranges.trusted.len() < MAX_PAGES && can_fault(range)
    }

    /// Trusts the pages that hold any byte from `start` up to `end` no more. `is_written`: because they are being written.
    pub fn end_trust(&mut self, writer: &RingWriter, start: AppPc, end: AppPc, is_written: bool) {
        if self.ranges.trusted.within(start, end).is_empty() {
            return;
        }
        self.trust.n_ends += 1;
        let mut pages = self.ranges.trusted.take(start, end);
        for page in &pages {
            // No thread comes to it any more before it can be written.
            self.translate_again(writer, *page, false);
            // From now on it can be written, and what went out of use is compared by nobody.
            self.note_gone(page_start(*page), page_start(*page + 1));
            if is_written {
                let n_writes = self.trust.writes.find(*page).unwrap_or(0);
                self.trust.writes.insert(*page, n_writes + 1);
                self.shared.add(crate::status_field!(trust_ends), 1);
            }
        }
        pages.retain(|page| !protect(*page, ALL));
        if !pages.is_empty() {
            // Memory is in as many pieces as the kernel allows: where none is trusted it is in fewer.
            self.end_trust(writer, AppPc::LOWEST, AppPc::HIGHEST, false);
            for page in pages {
                protect(page, ALL);
            }
        }
    }

    /// Gives all rights back, in a process that goes on without the runtime.
    pub fn unprotect_all(&mut self) {
        for page in self.ranges.trusted.take(AppPc::LOWEST, AppPc::HIGHEST) {
            protect(page, ALL);
        }
    }

    /// Trusts nothing from now on, until `resume_trust`: something else than translated code runs here.
    pub fn suspend_trust(&mut self, writer: &RingWriter) {
        self.trust.n_suspended += 1;
        self.end_trust(writer, AppPc::LOWEST, AppPc::HIGHEST, false);
    }

    pub fn resume_trust(&mut self) {
        self.trust.n_suspended -= 1;
    }

    /// The kernel may write to the memory around `address`, which a system call names, at any time.
    pub fn leave_to_kernel(&mut self, writer: &RingWriter, address: AppPc) {
        let Some(range) = self.ranges.find(address).filter(|range| range.protection & PROT_WRITE != 0) else {
            return;
        };
        if self.trust.kernels.find(address).is_none() {
            self.end_trust(writer, range.start, range.end, false);
            self.trust.kernels.insert(range.start, range.end, range.protection, true);
        }
    }

    /// Notes code from `start` up to `end` that might be trusted: the gate looks out for system calls that name it.
    pub fn note_candidate(&self, start: AppPc, end: AppPc, protection: u64) {
        if protection & ALL == ALL && !self.aliases.intersects(start, end) {
            code_span::widen(start.raw(), end.raw());
        }
    }

    /// Has a page's code translated again as it runs: what is compared, or what is not.
    fn translate_again(&mut self, writer: &RingWriter, page: u64, is_compared: bool) {
        let start = page_start(page);
        self.cache.rseqs.remove(start, start + PAGE_BYTES);
        for id in self.fragments_within(start, start + PAGE_BYTES) {
            match (self.cache.fragment(id).is_compared, is_compared) {
                (true, true) => self.retire_compared(writer, id),
                (false, false) => self.retire_to_be_made_again(writer, id),
                _ => {}
            }
        }
    }
}
