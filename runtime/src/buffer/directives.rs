//! What the controller tells all threads while the program runs, and how a stopped one waits.

extern crate alloc;
use super::ring::Bell;
use super::{RingWriter, Shared};
use crate::protocol;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

impl Shared {
    /// Not 0: threads that come to the dispatcher are stopped there.
    pub fn hold_ticket(&self) -> u32 {
        // SAFETY: the status page is mapped; the field is an aligned u32.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.status()).hold_ticket) }.load(Ordering::Acquire)
    }

    /// How often the controller changed what the runtime is to do.
    pub fn directive_count(&self) -> u32 {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.status()).directive_count) }.load(Ordering::Acquire)
    }

    /// Whether the order of execution is to be recorded.
    pub fn records_order(&self) -> bool {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.status()).records_order) }.load(Ordering::Acquire) & 1 != 0
    }

    /// Whether accesses to memory are to be told beside it.
    pub fn tells_accesses(&self) -> bool {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.status()).records_order) }.load(Ordering::Acquire) & 2 != 0
    }

    /// Whether another process may write to the code, whatever is protected.
    pub fn is_written(&self) -> bool {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.status()).is_written) }.load(Ordering::Acquire) != 0
    }

    /// Whether threads are to stop in front of the instruction at `pc`.
    pub fn has_breakpoint(&self, pc: u64) -> bool {
        self.iter_breakpoints().any(|breakpoint| breakpoint == pc)
    }

    /// Whether there is any.
    pub fn has_breakpoints(&self) -> bool {
        self.iter_breakpoints().next().is_some()
    }

    /// Whether the thread of a slot is not followed.
    pub fn is_unfollowed(&self, slot: u32) -> bool {
        // SAFETY: the slot is mapped; the field is an aligned u32.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.slot(slot)).is_unfollowed) }.load(Ordering::Acquire) != 0
    }

    /// Has the thread that begins in a slot be followed or not, as the controller wants it of new ones.
    pub fn choose_following(&self, slot: u32) {
        // SAFETY: slot and status page are mapped; the fields are aligned.
        unsafe {
            let wanted = AtomicU32::from_ptr(&raw mut (*self.status()).unfollows_new).load(Ordering::Acquire);
            AtomicU32::from_ptr(&raw mut (*self.slot(slot)).is_unfollowed).store(wanted, Ordering::Release);
        }
    }

    /// Has the thread of a slot be followed until the controller looks at it, if it does so with new ones.
    pub fn follow_renamed(&self, slot: u32) {
        // SAFETY: slot and status page are mapped; the fields are aligned.
        unsafe {
            if AtomicU32::from_ptr(&raw mut (*self.status()).unfollows_new).load(Ordering::Acquire) == 0 {
                AtomicU32::from_ptr(&raw mut (*self.slot(slot)).is_unfollowed).store(0, Ordering::Release);
            }
        }
    }

    /// All breakpoints.
    pub fn breakpoints(&self) -> Vec<u64> {
        self.iter_breakpoints().collect()
    }

    /// When the controller wrote the table of captures last, by the time stamp counter.
    pub fn captures_tsc(&self) -> u64 {
        // SAFETY: the status page is mapped, the field aligned.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.status()).captures_tsc) }.load(Ordering::Relaxed)
    }

    /// How many captures there are.
    pub fn capture_count(&self) -> u32 {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.status()).capture_count) }.load(Ordering::Acquire)
    }

    /// Says how many of them are none.
    pub fn set_refused_captures(&self, count: u32) {
        // SAFETY: as above; only the runtime writes it.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.status()).refused_captures) }.store(count, Ordering::Relaxed);
    }

    /// The task that the controller has go on natively, beside the process; 0: none.
    pub fn released_task(&self) -> u32 {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.status()).released_task) }.load(Ordering::Acquire)
    }

    /// How many pages of code were ever said to have changed behind the process' back.
    pub fn changed_count(&self) -> u32 {
        // SAFETY: the status page is mapped; the field is an aligned u32.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.status()).changed_count) }.load(Ordering::Acquire)
    }

    /// The page that was the one with this number; another one, where more than the table holds were told since.
    pub fn changed_page(&self, number: u32) -> u64 {
        let index = (number % protocol::MAX_CHANGED_PAGES as u32) as usize;
        // SAFETY: the status page is mapped, and the index is inside the array.
        unsafe { (&raw const (*self.status()).changed_pages[index]).read_volatile() }
    }

    /// The ranges of code whose blocks are to be asked about, with the ticket that says whether that is the same as before.
    pub fn transform_ranges(&self) -> (u32, Vec<(u64, u64)>) {
        let status = self.status();
        // SAFETY: the status page is mapped; the fields are aligned.
        let (ticket, count) = unsafe {
            let count = AtomicU32::from_ptr(&raw mut (*status).transform_count).load(Ordering::Acquire);
            (AtomicU32::from_ptr(&raw mut (*status).transform_ticket).load(Ordering::Acquire), count)
        };
        // SAFETY: as above, inside the array.
        let word = |index: usize| unsafe { (&raw const (*status).transform_ranges[index]).read_volatile() };
        let count = (count as usize).min(protocol::MAX_TRANSFORM_RANGES as usize);
        (ticket, (0..count).map(|index| (word(2 * index), word(2 * index + 1))).collect())
    }

    /// How many ranges of code were ever said to be translated anew.
    pub fn invalidated_count(&self) -> u32 {
        // SAFETY: the status page is mapped; the field is an aligned u32.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.status()).invalidated_count) }.load(Ordering::Acquire)
    }

    /// The range that was the one with this number; another one, where more than the table holds were told since.
    pub fn invalidated_range(&self, number: u32) -> (u64, u64) {
        let index = (number % protocol::MAX_INVALIDATED_RANGES as u32) as usize;
        // SAFETY: the status page is mapped, and both indices are inside the array.
        let word = |at: usize| unsafe { (&raw const (*self.status()).invalidated_ranges[at]).read_volatile() };
        (word(2 * index), word(2 * index + 1))
    }

    /// How many addresses were ever told whose code is to be translated before it is executed.
    pub fn prefetch_count(&self) -> u32 {
        // SAFETY: the status page is mapped; the field is an aligned u32.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.status()).prefetch_count) }.load(Ordering::Acquire)
    }

    /// The address that was the one with this number; another one, where more than the table holds were told since.
    pub fn prefetch_address(&self, number: u32) -> u64 {
        let index = u64::from(number) % protocol::MAX_PREFETCHED;
        let table = (self.base() + self.header().prefetch_offset) as *const u64;
        // SAFETY: the table is inside the mapping, as the controller laid it out, and the index inside the table.
        unsafe { table.add(index as usize).read_volatile() }
    }

    /// Says that so many of them were looked at.
    pub fn set_prefetch_done(&self, count: u32) {
        // SAFETY: the status page is mapped; the field is an aligned u32, and only the runtime writes it.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.status()).prefetch_done) }.store(count, Ordering::Release);
    }

    fn iter_breakpoints(&self) -> impl Iterator<Item = u64> + use<> {
        let status = self.status();
        // SAFETY: the status page is mapped; the fields are aligned.
        let count = unsafe { AtomicU32::from_ptr(&raw mut (*status).breakpoint_count) }.load(Ordering::Acquire);
        // SAFETY: as above, inside the array.
        (0..(count as usize).min(protocol::MAX_BREAKPOINTS as usize))
            .map(move |index| unsafe { (&raw const (*status).breakpoints[index]).read_volatile() })
    }
}

impl RingWriter {
    /// Tells the controller that the thread is stopped, its own `registers` then pc and flags, the low halves of its first vector
    /// registers, its thread pointer and the mark that it comes from, and waits for as long as the controller is there to say how to go on.
    pub fn wait_stopped(
        &self,
        reason: u32,
        registers: [u64; 18],
        vectors: [u64; 8],
        [thread_pointer, behind]: [u64; 2],
    ) -> u32 {
        let slot = self.slot_pointer();
        // SAFETY: the slot is mapped and this thread's own; the fields are aligned.
        unsafe {
            (&raw mut (*slot).held_registers).write_volatile(registers);
            (&raw mut (*slot).held_vectors).write_volatile(vectors);
            (&raw mut (*slot).held_thread_pointer).write_volatile(thread_pointer);
            (&raw mut (*slot).held_behind).write_volatile(behind);
        }
        let bell = if reason == protocol::hold_reason::CAPTURE { Bell::Visit } else { Bell::Door };
        let answer = self.ask_for(protocol::request_kind::HOLD, [u64::from(reason), 0, 0, 0], true, bell);
        answer.unwrap_or(protocol::hold_reply::GO_ON)
    }

    /// Tells the controller that the thread is about to translate the block at `pc` of so many bytes, and waits for what is to be changed in it:
    /// how many bytes of that were written into `changes`. `None`: nothing.
    pub fn wait_for_changes(
        &self,
        pc: u64,
        size_bytes: u64,
        changes: &mut [u8; protocol::MAX_BLOCK_CHANGES_BYTES as usize],
    ) -> Option<usize> {
        // The controller writes there, which the compiler does not see.
        let place = core::hint::black_box(changes.as_mut_ptr());
        let arguments = [u64::from(protocol::hold_reason::BLOCK), size_bytes, place as u64, pc];
        let reply = self.ask_for(protocol::request_kind::HOLD, arguments, true, Bell::Visit);
        (reply == Some(protocol::hold_reply::CHANGED_BLOCK)).then(|| self.answer()[0] as usize)
    }

    /// The vector registers that it wants, low halves.
    pub fn told_vectors(&self) -> [u64; 8] {
        // SAFETY: as for `told_registers`.
        unsafe { (&raw const (*self.slot_pointer()).held_vectors).read_volatile() }
    }

    /// The registers that the controller wants instead, as they are in the thread's slot now.
    pub fn told_registers(&self) -> [u64; 18] {
        // SAFETY: the slot is mapped and this thread's own; the field is aligned, and any number may be in it.
        unsafe { (&raw const (*self.slot_pointer()).held_registers).read_volatile() }
    }
}
