//! Restartable sequences (rseq(2)): where the program has them, and where their copies are.
//!
//! The kernel compares the processor's instruction pointer with what a thread's descriptor says, so all code of a critical section
//! is copied into one piece of the cache, its *enclosure*, and another descriptor, the *shadow*, says where that is:
//!
//! | from | what | does the kernel abort there? |
//! | --- | --- | --- |
//! | `shadow` | the descriptor, then the program's signature | |
//! | `stub` | where the kernel sends aborted threads | no |
//! | `entries` | where fragments are entered from outside: one slot for each | no |
//! | `covered` | the fragments, growing up | yes |
//! | below `covered_end` | the one instruction that ends the critical section, up to its very end | yes |
//! | `covered_end` | the way out behind it | no |
//!
//! Changed under the runtime's lock; the arenas are read by the signal handler. How fragments come here is said in
//! instrument/rseq.rs, what happens at run time in dispatch/flow/rseq.rs.

extern crate alloc;
use super::slab::{Unit, HOT_ROOM_BYTES};
use super::slabs::Slabs;
use super::views::writable;
use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::{ExitId, FragmentId};
use crate::cpu::emit::Emitter;
use crate::sys::heap::Arena;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

/// The longest critical section that is followed: others run as code like any other.
pub const MAX_RSEQ_BYTES: u64 = 1024;
/// How often a critical section gets another enclosure because one is full.
const MAX_ENCLOSURES: u32 = 8;
/// What a slab has room for wherever it has any.
const MAX_ENCLOSURE_BYTES: u64 = HOT_ROOM_BYTES - 64;
/// How many enclosures there are at most: two critical sections of one piece of code take each other's place for ever.
const MAX_ENCLOSURES_IN_ALL: usize = 1 << 13;
const SIGNATURE_OFFSET: u64 = 36;
const STUB_OFFSET: u64 = 40;
const ENTRIES_OFFSET: u64 = 64;
pub const ENTRY_BYTES: u64 = 24;
/// Room for the way out behind the last instruction.
const WAY_OUT_BYTES: u64 = 64;
/// Room for the last instruction.
const LAST_BYTES: u64 = 16;

/// `struct rseq_cs`: what is said of a critical section, by the program of its code, by a shadow of what is in an enclosure.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Descriptor<Pc> {
    pub version: u32,
    pub flags: u32,
    pub start: Pc,
    pub size: u64,
    pub abort: Pc,
}

/// As the program has it.
pub type AppDescriptor = Descriptor<AppPc>;

/// What takes its place.
type ShadowDescriptor = Descriptor<CachePc>;

const _: () = assert!(size_of::<ShadowDescriptor>() as u64 <= SIGNATURE_OFFSET && SIGNATURE_OFFSET + 4 == STUB_OFFSET);

impl AppDescriptor {
    pub fn end(&self) -> AppPc {
        self.start.wrapping_add(self.size)
    }

    pub fn contains(&self, pc: AppPc) -> bool {
        pc.bytes_behind(self.start) < self.size
    }
}

/// A critical section, and the piece of the cache that holds its copy.
#[derive(Clone, Copy)]
pub struct Enclosure {
    /// The program's descriptor: where it is, and what it says.
    pub address: u64,
    pub descriptor: AppDescriptor,
    pub shadow: u64,
    pub stub: CachePc,
    pub covered: CachePc,
    pub covered_end: CachePc,
    /// Free room for entries and for code.
    next_entry: CachePc,
    next_code: CachePc,
    /// The exit that the stub stands for.
    pub abort_exit: ExitId,
    /// The last instruction is in place.
    pub has_last: bool,
}

impl Enclosure {
    /// One that begins with its shadow, at `shadow`; the critical section had `n_before` others.
    pub fn laid_out(
        shadow: u64,
        address: u64,
        descriptor: AppDescriptor,
        n_before: u32,
        abort_exit: ExitId,
    ) -> Enclosure {
        // How much a block takes in an enclosure does not depend on its size: what was full becomes larger.
        let size = ((0x2000 + 40 * descriptor.size) << n_before).min(MAX_ENCLOSURE_BYTES);
        let at = CachePc::from_raw(shadow);
        let covered = at + ENTRIES_OFFSET + ENTRY_BYTES * (32 + descriptor.size / 4);
        Enclosure {
            address,
            descriptor,
            shadow,
            stub: at + STUB_OFFSET,
            covered,
            covered_end: at + size - WAY_OUT_BYTES,
            next_entry: at + ENTRIES_OFFSET,
            next_code: covered,
            abort_exit,
            has_last: false,
        }
    }

    /// Where the last instruction is to start, if it has `size` bytes.
    pub fn last_start(&self, size: usize) -> CachePc {
        self.covered_end - size as u64
    }

    /// Writes the stub.
    ///
    /// # Safety
    /// The enclosure must be new.
    pub unsafe fn stub_emitter(&self) -> Emitter<'static> {
        let size = (ENTRIES_OFFSET - STUB_OFFSET) as usize;
        // SAFETY: these bytes are kept for the stub.
        let room = unsafe { core::slice::from_raw_parts_mut(writable(self.stub.raw()) as *mut u8, size) };
        Emitter::new(room, self.stub.raw(), &mut [], 0)
    }

    /// Writes a fragment: its entry is the cold section. `None`: the enclosure is full.
    ///
    /// # Safety
    /// Nothing else may write to the enclosure meanwhile.
    pub unsafe fn emitter(&self) -> Option<Emitter<'static>> {
        if self.next_entry + ENTRY_BYTES > self.covered {
            return None;
        }
        let size = (self.covered_end - LAST_BYTES).raw().checked_sub(self.next_code.raw())?;
        // SAFETY: from `next_code` up to the last instruction, and from `next_entry` on, nothing is used yet.
        let (code, entry) = unsafe {
            (
                core::slice::from_raw_parts_mut(writable(self.next_code.raw()) as *mut u8, size as usize),
                core::slice::from_raw_parts_mut(writable(self.next_entry.raw()) as *mut u8, ENTRY_BYTES as usize),
            )
        };
        Some(Emitter::new(code, self.next_code.raw(), entry, self.next_entry.raw()))
    }

    /// Writes the last instruction, of `size` bytes, and the way out.
    ///
    /// # Safety
    /// As `emitter`, and the last instruction must not be in place.
    pub unsafe fn last_emitter(&self, size: usize) -> Emitter<'static> {
        let start = self.last_start(size.min(LAST_BYTES as usize));
        let end = self.covered_end + WAY_OUT_BYTES;
        // SAFETY: these bytes are kept for the last instruction and what follows it.
        let room = unsafe { core::slice::from_raw_parts_mut(writable(start.raw()) as *mut u8, (end - start) as usize) };
        Emitter::new(room, start.raw(), &mut [], 0)
    }
}

/// Which part of an enclosure belongs to which fragment.
#[derive(Clone, Copy)]
struct Piece {
    enclosure: u32,
    fragment: FragmentId,
    start: CachePc,
    end: CachePc,
}

/// All critical sections of the process.
pub struct Rseqs {
    pub enclosures: Arena<Enclosure>,
    pieces: Arena<Piece>,
    /// Those in use, by the address at which they start: enclosure, and how many the critical section had.
    by_start: BTreeMap<AppPc, (u32, u32)>,
    /// Where critical sections start whose code can't be copied.
    given_up: Vec<AppPc>,
    /// What precedes the address to go to on an abort, as the program told the kernel; `None`: it did not yet.
    pub signature: Option<u32>,
}

impl Rseqs {
    pub const fn new() -> Rseqs {
        Rseqs {
            enclosures: Arena::new(1 << 26),
            pieces: Arena::new(1 << 26),
            by_start: BTreeMap::new(),
            given_up: Vec::new(),
            signature: None,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    pub fn enclosure(&self, index: u32) -> &Enclosure {
        &self.enclosures.as_slice()[index as usize]
    }

    fn enclosure_mut(&mut self, index: u32) -> &mut Enclosure {
        &mut self.enclosures.as_mut_slice()[index as usize]
    }

    /// The critical section that holds `pc`.
    pub fn find(&self, pc: AppPc) -> Option<u32> {
        let (_, (index, _)) = self.by_start.range(..=pc).next_back()?;
        self.enclosure(*index).descriptor.contains(pc).then_some(*index)
    }

    /// Whether any critical section has code from `start` up to `end`.
    pub fn intersects(&self, start: AppPc, end: AppPc) -> bool {
        let last = self.by_start.range(..end).next_back();
        last.is_some_and(|(_, (index, _))| self.enclosure(*index).descriptor.end() > start)
    }

    /// Whether `shadow` is one of the enclosure's critical section: of this enclosure or of one that it replaced.
    pub fn is_shadow_of(&self, shadow: u64, index: u32) -> bool {
        let address = self.enclosure(index).address;
        shadow != 0
            && self
                .enclosures
                .as_slice()
                .iter()
                .any(|enclosure| enclosure.shadow == shadow && enclosure.address == address)
    }

    /// Forgets the critical sections with code from `start` up to `end`. What is in their enclosures runs on.
    pub fn remove(&mut self, start: AppPc, end: AppPc) {
        while self.intersects(start, end) {
            if let Some(key) = self.by_start.range(..end).next_back().map(|(key, _)| *key) {
                self.by_start.remove(&key);
            }
        }
        self.given_up.retain(|pc| !(start..end).contains(pc));
    }

    /// Takes out all that are known: where the program has their descriptors, and what these say.
    pub fn take_known(&mut self) -> Vec<(u64, AppDescriptor)> {
        let known = core::mem::take(&mut self.by_start);
        let told = |(index, _)| (self.enclosure(index).address, self.enclosure(index).descriptor);
        known.into_values().map(told).collect()
    }

    /// Forgets all critical sections.
    pub fn forget_all(&mut self) {
        self.by_start.clear();
        self.given_up.clear();
    }

    /// The cache's memory in `left` is about to go: no shadow is there any more.
    pub fn forget_memory(&mut self, left: &Range<u64>) {
        for enclosure in self.enclosures.as_mut_slice().iter_mut().filter(|enclosure| left.contains(&enclosure.shadow))
        {
            enclosure.shadow = 0;
        }
    }

    /// Notes that the critical section at `start` is code like any other.
    pub fn give_up(&mut self, start: AppPc) {
        self.by_start.remove(&start);
        self.given_up.push(start);
    }

    pub fn is_given_up(&self, start: AppPc) -> bool {
        self.given_up.contains(&start)
    }

    /// Makes an enclosure for the critical section that `descriptor`, at `address`, describes; another one if there is one.
    /// `None`: there is no room, or there were too many. Its stub is still to be written.
    pub fn make(
        &mut self,
        slabs: &mut Slabs,
        address: u64,
        descriptor: AppDescriptor,
        signature: u32,
        abort_exit: ExitId,
    ) -> Option<u32> {
        let n_before = self.by_start.get(&descriptor.start).map_or(0, |(_, n)| *n);
        let is_full = n_before == MAX_ENCLOSURES || self.enclosures.len() == MAX_ENCLOSURES_IN_ALL;
        if is_full || descriptor.size > MAX_RSEQ_BYTES {
            return None;
        }
        let room = slabs.room_near(descriptor.start)?;
        let shadow = room.hot.raw().next_multiple_of(32);
        let enclosure = Enclosure::laid_out(shadow, address, descriptor, n_before, abort_exit);
        let Enclosure { stub, covered, covered_end, .. } = enclosure;
        let AppDescriptor { version, flags, .. } = descriptor;
        let own = Descriptor { version, flags, start: covered, size: covered_end - covered, abort: stub };
        // SAFETY: the room is unused, and larger than any enclosure.
        unsafe {
            (writable(shadow) as *mut ShadowDescriptor).write(own);
            (writable(shadow + SIGNATURE_OFFSET) as *mut u32).write(signature);
        }
        let index = self.enclosures.push(enclosure)? as u32;
        slabs.commit(room, (covered_end + WAY_OUT_BYTES).raw() - room.hot.raw(), 0, Unit::Enclosure(index));
        self.by_start.insert(descriptor.start, (index, n_before + 1));
        Some(index)
    }

    /// Takes the room that a fragment got: its entry and its code up to `end`, or, `is_last`, the last instruction.
    /// `false` if memory is used up.
    pub fn commit(&mut self, index: u32, fragment: FragmentId, end: CachePc, is_last: bool) -> bool {
        let enclosure = *self.enclosure(index);
        let piece = |start, end| Piece { enclosure: index, fragment, start, end };
        let pieces = if is_last {
            [
                piece(enclosure.covered_end - LAST_BYTES, enclosure.covered_end + WAY_OUT_BYTES),
                piece(CachePc::NOWHERE, CachePc::NOWHERE),
            ]
        } else {
            [piece(enclosure.next_entry, enclosure.next_entry + ENTRY_BYTES), piece(enclosure.next_code, end)]
        };
        let enclosure = self.enclosure_mut(index);
        if is_last {
            enclosure.has_last = true;
        } else {
            enclosure.next_entry = enclosure.next_entry + ENTRY_BYTES;
            enclosure.next_code = end;
        }
        self.pieces.extend(&pieces).is_some()
    }

    /// The fragment at an address of an enclosure. Lock-free: called by the signal handler.
    pub fn fragment_at(&self, index: u32, address: u64) -> Option<FragmentId> {
        let holds =
            |piece: &&Piece| piece.enclosure == index && (piece.start.raw()..piece.end.raw()).contains(&address);
        self.pieces.as_slice().iter().find(holds).map(|piece| piece.fragment)
    }
}
