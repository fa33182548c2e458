//! Which threads there are, and the slots of the shared memory they own.

extern crate alloc;
use super::block;
use crate::buffer::{RingWriter, Shared, WaitLimit};
use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::SiteId;
use crate::context::ThreadContext;
use crate::cpu::private_range::private_base;
use crate::cpu::sys::clock::ticks;
use crate::cpu::sys::number;
use crate::protocol::{record_kind, slot_state, EventRecord, THREAD_STRIDE_BYTES};
use crate::sys::calls::{futex_wait, syscall, thread_exists};
use crate::sys::kernel::MADV_REMOVE;
use crate::sys::lock::Lock;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

/// What a slot's private block was last used for.
#[derive(Clone, Copy)]
struct Place {
    is_used: bool,
    is_mapped: bool,
    tid: u32,
}

pub struct Threads {
    places: Vec<Place>,
    /// The branch tables of all threads are filled so far, entries.
    pub branch_table_filled: u32,
}

/// All threads of the process. Taken after the engine's lock, never before it.
pub static THREADS: Lock<Threads> = Lock::new(Threads { places: Vec::new(), branch_table_filled: 0x1_0000 });

/// Slots of ended threads that the controller did not come to yet: with more of them no slot is used that never was. The memory of
/// many short threads would grow with how busy the controller is.
const MAX_ENDED: u32 = 96;

/// Which slots may be taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taking {
    Any,
    /// None that never was used, where many others wait for the controller.
    Used,
}

impl Threads {
    /// Takes a free slot and makes its private block. `None`: no slot is free, or memory is used up.
    pub fn take(&mut self, shared: Shared) -> Option<&'static mut ThreadContext> {
        self.take_of(shared, Taking::Any)
    }

    fn take_of(&mut self, shared: Shared, taking: Taking) -> Option<&'static mut ThreadContext> {
        let max_threads = shared.header().max_threads;
        let mut n_ended = 0;
        for index in 0..max_threads {
            if index as usize == self.places.len() && taking == Taking::Used && n_ended > MAX_ENDED {
                return None;
            }
            // SAFETY: the slot is mapped, the field aligned.
            let state = unsafe { AtomicU32::from_ptr(&raw mut (*shared.slot(index)).state) };
            let found = state.load(Ordering::Acquire);
            n_ended += u32::from(found == slot_state::ENDED);
            if found != slot_state::FREE {
                continue;
            }
            // Its last thread said that it ended, and may still stand on the block's stack.
            let place = self.places.get(index as usize).copied();
            if place.is_some_and(|place| place.is_used && place.tid != 0 && thread_exists(place.tid)) {
                continue;
            }
            if state
                .compare_exchange(slot_state::FREE, slot_state::RUNNING, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
            {
                continue;
            }
            // Until the thread begins it is nobody's: its last user has a row already.
            // SAFETY: the slot is mapped, and this process' own from now on.
            unsafe { (&raw mut (*shared.slot(index)).tid).write_volatile(0) };
            if self.places.len() <= index as usize {
                self.places.resize(index as usize + 1, Place { is_used: false, is_mapped: false, tid: 0 });
                self.tell_used(shared);
            }
            let address = private_base() + u64::from(index) * THREAD_STRIDE_BYTES;
            let place = &mut self.places[index as usize];
            place.is_mapped = place.is_mapped || block::map(address, index, shared, self.branch_table_filled);
            let made = if place.is_mapped { block::make(address, index, shared) } else { None };
            let Some(context) = made else {
                // SAFETY: as above.
                unsafe { AtomicU32::from_ptr(&raw mut (*shared.slot(index)).state) }
                    .store(slot_state::FREE, Ordering::Release);
                return None;
            };
            self.places[index as usize] = Place { is_used: true, is_mapped: true, tid: 0 };
            return Some(context);
        }
        None
    }

    /// Says how many slots were ever used: others are looked at by nobody.
    fn tell_used(&self, shared: Shared) {
        shared.set(crate::status_field!(slots_used), self.places.len() as u64);
    }

    /// How many slots were ever used.
    pub fn n_slots(&self) -> u32 {
        self.places.len() as u32
    }

    /// Gives a slot back that no thread came to use.
    pub fn give_back(&mut self, shared: Shared, slot: u32) {
        if let Some(place) = self.places.get_mut(slot as usize) {
            place.is_used = false;
        }
        // SAFETY: the slot is mapped, the field aligned.
        unsafe { AtomicU32::from_ptr(&raw mut (*shared.slot(slot)).state) }.store(slot_state::FREE, Ordering::Release);
    }

    /// In a fork's child, whose only thread has `context`: all other threads are the parent's. Their address space is free
    /// again, and this thread's slot is its own in the child's region. `false`: reported.
    pub fn keep_only(&mut self, context: &ThreadContext, shared: Shared) -> bool {
        for index in 0..self.places.len() {
            if index as u32 != context.slot && self.places[index].is_mapped {
                block::forget(private_base() + index as u64 * THREAD_STRIDE_BYTES);
                self.places[index] = Place { is_used: false, is_mapped: false, tid: 0 };
            }
        }
        self.places[context.slot as usize].tid = context.tid;
        self.tell_used(shared);
        // SAFETY: the slot is mapped, the field aligned.
        unsafe { AtomicU32::from_ptr(&raw mut (*shared.slot(context.slot)).state) }
            .store(slot_state::RUNNING, Ordering::Release);
        block::map_counters(context.self_address, context.slot, shared)
    }

    /// The user of a slot, a process that shared this one's memory, is gone from it without having said so.
    pub fn end_for(&mut self, slot: u32, shared: Shared) {
        let row = shared.slot(slot);
        // SAFETY: the slot is mapped, and its user writes it no more.
        unsafe {
            if (&raw const (*row).end_tsc).read_volatile() == 0 {
                (&raw mut (*row).end_tsc).write_volatile(ticks());
            }
            AtomicU32::from_ptr(&raw mut (*row).state).store(slot_state::ENDED, Ordering::Release);
        }
        self.set_tid(slot, 0);
    }

    /// Notes who uses a slot, once that is known.
    pub fn set_tid(&mut self, slot: u32, tid: u32) {
        if let Some(place) = self.places.get_mut(slot as usize) {
            place.tid = tid;
        }
    }

    /// The contexts of all threads that have one.
    pub fn contexts(&self) -> impl Iterator<Item = *mut ThreadContext> + '_ {
        self.contexts_of(|place| place.is_used)
    }

    /// The contexts of all blocks, whose branch tables are also those of the threads that come into them next.
    fn blocks(&self) -> impl Iterator<Item = *mut ThreadContext> + '_ {
        self.contexts_of(|place| place.is_mapped)
    }

    fn contexts_of<'a>(
        &'a self,
        has_one: impl Fn(&Place) -> bool + 'a,
    ) -> impl Iterator<Item = *mut ThreadContext> + 'a {
        let base = private_base();
        self.places
            .iter()
            .enumerate()
            .filter(move |(_, place)| has_one(place))
            .map(move |(index, _)| (base + index as u64 * THREAD_STRIDE_BYTES) as *mut ThreadContext)
    }

    /// Tells on the status page what the gates of all threads counted: the process is about to end.
    pub fn tell_misses(&self, shared: Shared) {
        for context in self.contexts() {
            // SAFETY: the context of a slot that is in use.
            tell_misses(unsafe { &*context }, shared);
        }
    }

    /// How many threads run now.
    pub fn count_running(&self, shared: Shared) -> usize {
        (0..self.places.len() as u32)
            .filter(|index| {
                // SAFETY: the slot is mapped, the field aligned.
                let state = unsafe { AtomicU32::from_ptr(&raw mut (*shared.slot(*index)).state) };
                state.load(Ordering::Acquire) == slot_state::RUNNING
            })
            .count()
    }

    /// Fills all branch tables so that a site at `site` has all its entries.
    pub fn reach_site(&mut self, site: SiteId) {
        let needed = site.raw() + 0x1_0000;
        if needed <= self.branch_table_filled {
            return;
        }
        for context in self.blocks() {
            // Entries past the filled part are not read by its thread, because no site that reaches them has run.
            block::fill_branch_table(context as u64, self.branch_table_filled, needed);
        }
        self.branch_table_filled = needed;
    }

    /// Has all that branch tables lead to be looked for anew.
    pub fn empty_branch_tables(&self) {
        for context in self.blocks() {
            // Other threads read an entry as a whole, and either value is right.
            block::fill_branch_table(context as u64, 0, self.branch_table_filled);
        }
    }

    /// Makes what leads from a site to `address` lead to `new` instead, in all branch tables.
    pub fn change_branch(&mut self, site: SiteId, target: AppPc, address: CachePc, new: CachePc) {
        for context in self.blocks() {
            // SAFETY: mapped; other threads read the entry as a whole, and either value is right.
            unsafe {
                let entry = (*context).branch_entry(site, target);
                if entry.read_volatile() == address.raw() {
                    entry.write_volatile(new.raw());
                }
            }
        }
    }

    /// Tells all threads where the pair table is now. The table is stored before the mask: see cache/pairs.
    pub fn set_pair_table(&mut self, table: u64, mask: u64) {
        for context in self.contexts() {
            // SAFETY: the context of a slot that is in use; other threads read these fields one at a time, and either value is right.
            unsafe {
                (&raw mut (*context).gate.pair_table).write_volatile(table);
                (&raw mut (*context).gate.pair_mask).write_volatile(mask);
            }
        }
    }
}

/// Takes a slot as `Threads::take` does. Where all are in use, but some thread has ended, the controller is waited for: it is
/// about to give that slot back; if it is gone the slot is taken anew. No lock held, all signals blocked.
pub fn take_slot(shared: Shared) -> Option<&'static mut ThreadContext> {
    if let Some(context) = take_used(shared) {
        return Some(context);
    }
    let mut wait_limit = WaitLimit::new(shared);
    loop {
        if let Some(context) = THREADS.lock().take(shared) {
            return Some(context);
        }
        let (_, state) = find_ended(shared)?;
        if shared.is_controller_gone() || wait_limit.is_over() {
            reuse_slot(shared);
            continue;
        }
        futex_wait(state.as_ptr(), slot_state::ENDED, 1_000_000, true);
    }
}

/// Takes a slot as `take` does; where many wait for the controller it has a tenth of a second to come to them.
fn take_used(shared: Shared) -> Option<&'static mut ThreadContext> {
    const N_WAITS: u32 = 100;
    const WAIT_NS: u64 = 1_000_000;
    for _ in 0..N_WAITS {
        if let Some(context) = THREADS.lock().take_of(shared, Taking::Used) {
            return Some(context);
        }
        let (_, state) = find_ended(shared)?;
        if shared.is_controller_gone() {
            return None;
        }
        shared.ring_doorbell();
        futex_wait(state.as_ptr(), slot_state::ENDED, WAIT_NS, true);
    }
    None
}

/// The number of a slot whose thread has ended, and its state.
fn find_ended(shared: Shared) -> Option<(u32, &'static AtomicU32)> {
    (0..shared.header().max_threads)
        // SAFETY: the slot is mapped for the life of the runtime, the field aligned.
        .map(|index| (index, unsafe { AtomicU32::from_ptr(&raw mut (*shared.slot(index)).state) }))
        .find(|(_, state)| state.load(Ordering::Acquire) == slot_state::ENDED)
}

/// Makes a slot whose thread has ended free, where the controller does not. That thread is lost; whose the slot is next has
/// none of its counts, should the controller come back.
fn reuse_slot(shared: Shared) {
    // Nobody takes it before it is as it should be.
    let _threads = THREADS.lock();
    let Some((slot, state)) = find_ended(shared) else {
        return;
    };
    let (ended, free) = (slot_state::ENDED, slot_state::FREE);
    if state.compare_exchange(ended, free, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
        let arguments = [shared.counters(slot), shared.header().counter_bytes, u64::from(MADV_REMOVE), 0, 0, 0];
        // SAFETY: the slot's counters, which no thread uses now, become zeros.
        unsafe { syscall(number::MADVISE, arguments) };
        shared.add(crate::status_field!(lost_records), 1);
    }
}

/// The calling thread's ring.
pub fn writer_of(context: &ThreadContext, shared: Shared) -> RingWriter {
    RingWriter { shared, slot: context.slot, tid: context.tid }
}

/// Writes an event record.
pub fn write_event(writer: &RingWriter, event_kind: u16, app_pc: AppPc, details: [u64; 3]) {
    let record = EventRecord {
        kind: record_kind::EVENT,
        continuations: 0,
        tid: writer.tid,
        app_pc: app_pc.raw(),
        a: details[0],
        tsc: ticks(),
        b: details[1],
        c: details[2],
        event_kind,
        reserved: [0; 14],
    };
    writer.write(&record, &[]);
}

/// Fills the slot's row for a thread that starts.
pub fn begin_slot(context: &ThreadContext, shared: Shared) {
    let slot = shared.slot(context.slot);
    shared.choose_following(context.slot);
    // SAFETY: the slot is mapped and this thread's own.
    unsafe {
        (&raw mut (*slot).tid).write_volatile(context.tid);
        (&raw mut (*slot).parent_tid).write_volatile(context.process.parent_tid);
        (&raw mut (*slot).end_tsc).write_volatile(0);
        (&raw mut (*slot).end_kind).write_volatile(0);
        (&raw mut (*slot).name).write_volatile([0; 16]);
        (&raw mut (*slot).start_tsc).write_volatile(ticks());
    }
}

/// Tells on the status page what a thread's gates counted since this was last done.
fn tell_misses(context: &ThreadContext, shared: Shared) {
    let misses = &raw const context.gate.table_misses as *mut u64;
    // SAFETY: an aligned field of a live context. Its thread may add to it meanwhile, which may be lost.
    let count = unsafe {
        let count = misses.read_volatile();
        misses.write_volatile(0);
        count
    };
    shared.add(crate::status_field!(table_misses), count);
}

/// What the calling thread is called, zero padded.
pub fn thread_name() -> [u8; 16] {
    const PR_GET_NAME: u64 = 16;
    let mut name = [0u8; 16];
    // SAFETY: PR_GET_NAME writes at most 16 bytes.
    unsafe { syscall(number::PRCTL, [PR_GET_NAME, name.as_mut_ptr() as u64, 0, 0, 0, 0]) };
    name
}

/// Says in the slot how the thread ended; its name is asked of the kernel.
pub fn describe_end(context: &ThreadContext, shared: Shared, end_kind: u32) {
    let name = thread_name();
    let slot = shared.slot(context.slot);
    shared.stamp_last();
    tell_misses(context, shared);
    // SAFETY: the slot is mapped and this thread's own.
    unsafe {
        (&raw mut (*slot).name).write_volatile(name);
        (&raw mut (*slot).end_kind).write_volatile(end_kind);
        (&raw mut (*slot).end_tsc).write_volatile(ticks());
    }
}

/// The thread's last act on its slot: the controller may have it.
pub fn end_slot(context: &ThreadContext, shared: Shared) {
    // SAFETY: the slot is mapped, the field aligned.
    unsafe { AtomicU32::from_ptr(&raw mut (*shared.slot(context.slot)).state) }
        .store(slot_state::ENDED, Ordering::Release);
}
