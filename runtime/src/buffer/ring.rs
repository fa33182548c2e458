//! A thread's ring: records on their way to the controller, and what the thread asks it.
//!
//! Runs in the target, in the thread whose slot it is, in the dispatcher and in the gates' Rust. What records mean is not known
//! here, nor what a request is about.

use super::{Shared, WaitLimit};
use crate::protocol::{self, on_full, ThreadSlot};
use crate::status_field;
use crate::sys::calls::{futex_wait, yield_until};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How much processor time a thread spends on waiting for an answer without sleeping, at its birth and before it executes a
/// program: who made it may wait for it to sleep (shells and the tests of system calls do), and takes it to be in a call of
/// its own then.
const AWAKE_NS: u64 = 20_000_000;

/// The same of one that waits at a place: most callbacks are done by then, and waking up takes as long.
const VISIT_AWAKE_NS: u64 = 60_000;

/// Who is woken to answer: the controller's loop, or who waits for threads that come to places.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bell {
    Door,
    Visit,
}

/// Writes records into the calling thread's ring.
pub struct RingWriter {
    pub shared: Shared,
    pub slot: u32,
    pub tid: u32,
}

impl RingWriter {
    pub(super) fn slot_pointer(&self) -> *mut ThreadSlot {
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
        match self.shared.header().on_full {
            on_full::OVERWRITE => return true,
            on_full::WAIT if !self.shared.is_controller_gone() => {}
            _ => return false,
        }
        self.shared.add(status_field!(waits), 1);
        self.shared.ring_doorbell();
        let slot = self.slot_pointer();
        // SAFETY: the slot is mapped, the fields aligned.
        let waiters = unsafe { AtomicU32::from_ptr(&raw mut (*slot).ring_waiters) };
        let tail_low = self.tail().as_ptr() as *const u32;
        let mut wait_limit = WaitLimit::new(self.shared);
        while !has_room() {
            let before = self.tail().load(Ordering::Acquire);
            waiters.store(1, Ordering::SeqCst);
            futex_wait(tail_low, before as u32, 100_000_000, true);
            waiters.store(0, Ordering::SeqCst);
            if self.tail().load(Ordering::Acquire) != before {
                wait_limit = WaitLimit::new(self.shared);
            } else if wait_limit.is_over() {
                return false;
            }
        }
        true
    }

    /// Writes a record and its payload as continuations; `false`: they are lost, and counted so.
    pub fn write<T: Copy>(&self, record: &T, payload: &[u8]) -> bool {
        const { assert!(size_of::<T>() == protocol::RECORD_BYTES as usize) };
        let n = payload.len().div_ceil(protocol::CONTINUATION_PAYLOAD_BYTES as usize) as u64;
        let size = (1 + n) * protocol::RECORD_BYTES;
        if !self.wait_for(size) {
            self.count_lost();
            return false;
        }
        let mut head = self.head().load(Ordering::Relaxed);
        self.store(head, record);
        for (index, chunk) in payload.chunks(protocol::CONTINUATION_PAYLOAD_BYTES as usize).enumerate() {
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

    /// What came with the answer to the last request.
    pub fn answer(&self) -> [u64; 4] {
        // SAFETY: the slot is mapped and this thread's own, the field aligned; the controller writes it before it resets the kind.
        unsafe { (&raw const (*self.slot_pointer()).request_answer).read_volatile() }
    }

    /// Waits until child `pid`, which begins in region `region`, has executed a program or ended, or the controller is not there.
    pub fn await_child(&self, region: u32, pid: u64) {
        self.ask_for(protocol::request_kind::CHILD, [u64::from(region), pid, 0, 0], true, Bell::Door);
    }

    /// Says that child `pid` was made, which begins in region `region`: the controller takes note when it comes to it.
    pub fn tell_birth(&self, region: u32, pid: u64) {
        self.shared.born_child(self.slot).store(u64::from(region) << 32 | pid & 0xffff_ffff, Ordering::Release);
    }

    /// Waits until the controller has taken note of all children that the threads of the first `n_slots` slots made.
    pub fn await_births(&self, n_slots: u32) {
        for slot in 0..n_slots {
            if self.shared.born_child(slot).load(Ordering::Acquire) != 0 {
                self.request(protocol::request_kind::BORN, [u64::from(slot), 0, 0, 0]);
            }
        }
    }

    fn ask(&self, kind: u32, arguments: [u64; 4]) -> Option<u32> {
        self.ask_for(kind, arguments, false, Bell::Door)
    }

    /// Asks, wakes who answers by `bell`, and waits for that; `waits_long`: for as long as the controller is there, however long it
    /// takes. `None`: it is not there.
    pub(super) fn ask_for(&self, kind: u32, arguments: [u64; 4], waits_long: bool, bell: Bell) -> Option<u32> {
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
        match bell {
            Bell::Door => self.shared.ring_doorbell(),
            Bell::Visit => self.shared.ring_visit_bell(),
        }
        let mut wait_limit = WaitLimit::new(self.shared);
        if matches!(kind, protocol::request_kind::ADOPT | protocol::request_kind::EXECVE) {
            yield_until(AWAKE_NS, || word.load(Ordering::Acquire) != kind);
        }
        if bell == Bell::Visit {
            yield_until(VISIT_AWAKE_NS, || word.load(Ordering::Acquire) != kind);
        }
        while word.load(Ordering::Acquire) == kind {
            let is_over = if waits_long { wait_limit.is_alone() } else { wait_limit.is_over() };
            if is_over {
                return None;
            }
            futex_wait(word.as_ptr(), kind, 100_000_000, true);
        }
        // SAFETY: as above; the controller wrote it before it reset the kind.
        Some(unsafe { reply.read_volatile() })
    }
}
