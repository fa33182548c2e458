//! The process' rings of io_uring: where they lie, what was submitted to them, and which results came.
//!
//! Kernel and program write to a ring at any time, the program maybe anything: all that is read there is bounded by what the kernel allows,
//! and what can't be told is counted (`Unseen`). Offsets and flags are those of include/uapi/linux/io_uring.h. Pure, but for reading memory.

extern crate alloc;
use super::open_calls::OpenCall;
use super::other_calls::KeptText;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

/// What forms call registers: numbers of an operation's words.
pub mod word {
    /// The first of the words of eight bytes that its entry has.
    pub const ENTRY: usize = 0;
    pub const USER_DATA: usize = 4;
    /// The ring's descriptor, as the thread named it.
    pub const RING: usize = 8;
    /// What the kernel says of a result, and the result.
    pub const CQE_FLAGS: usize = 9;
    pub const RES: usize = 10;
    /// How many operations the result may be of, if not of one.
    pub const AMONG: usize = 11;
    pub const COUNT: usize = 12;
}

/// An operation's words; `None`: it is not known.
pub type Words = [Option<u64>; word::COUNT];

/// struct io_uring_params, with sq_off and cq_off.
pub const PARAMS_BYTES: usize = 120;
const SQE_BYTES: usize = 64;
const CQE_BYTES: usize = 16;

/// The kernel makes no larger ones (IORING_MAX_ENTRIES, IORING_MAX_CQ_ENTRIES).
const MAX_SUBMISSIONS: u32 = 32768;
const MAX_COMPLETIONS: u32 = 2 * MAX_SUBMISSIONS;

const SETUP_SQPOLL: u32 = 1 << 1;
const SETUP_SQE128: u32 = 1 << 10;
const SETUP_CQE32: u32 = 1 << 11;
const SETUP_NO_MMAP: u32 = 1 << 14;
pub const SETUP_REGISTERED_FD_ONLY: u32 = 1 << 15;
const SETUP_NO_SQARRAY: u32 = 1 << 16;
const SETUP_CQE_MIXED: u32 = 1 << 18;
const SETUP_SQE_MIXED: u32 = 1 << 19;

const CQE_F_MORE: u32 = 1 << 1;
/// Of a ring with results of two sizes: nothing is here; it is twice as large.
const CQE_F_SKIP: u32 = 1 << 5;
const CQE_F_32: u32 = 1 << 15;

/// Where mmap of a ring's descriptor shows what (IORING_OFF_*).
const OFFSET_SQ_RING: u64 = 0;
const OFFSET_CQ_RING: u64 = 0x800_0000;
const OFFSET_SQES: u64 = 0x1000_0000;

/// So many operations are open at most, of all rings, and so many bytes are kept of them.
const MAX_OPEN: usize = 1 << 14;
const MAX_KEPT_BYTES: usize = 1 << 22;
const MAX_RINGS: usize = 1 << 10;

/// Reads the program's memory; how many bytes of it could be read.
pub type Read<'r> = &'r dyn Fn(u64, &mut [u8]) -> usize;

/// What was not seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unseen {
    /// Operations that were submitted where nobody looked, or could look.
    pub submissions: u64,
    /// Results that were overwritten before anybody looked.
    pub completions: u64,
}

/// Which ring a thread means: by a descriptor, or by an index of those that it registered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Name {
    Descriptor(u32),
    Registered { tid: u32, index: u32 },
}

/// What was asked for, and where the ring has what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Layout {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    sq_head: u32,
    sq_tail: u32,
    array: u32,
    cq_tail: u32,
    cqes: u32,
    /// Where the program has the memory by itself (IORING_SETUP_NO_MMAP).
    own_rings: u64,
    own_sqes: u64,
}

impl Layout {
    /// Out of a struct io_uring_params, as io_uring_setup left it. `None`: the kernel makes none like that.
    pub fn of(params: &[u8; PARAMS_BYTES]) -> Option<Layout> {
        let word = |at: usize| u32::from_le_bytes(core::array::from_fn(|index| params[at + index]));
        let address = |at: usize| u64::from_le_bytes(core::array::from_fn(|index| params[at + index]));
        let layout = Layout {
            sq_entries: word(0),
            cq_entries: word(4),
            flags: word(8),
            sq_head: word(40),
            sq_tail: word(44),
            array: word(64),
            cq_tail: word(84),
            cqes: word(100),
            own_sqes: address(72),
            own_rings: address(112),
        };
        let is_sound = layout.sq_entries.is_power_of_two()
            && layout.cq_entries.is_power_of_two()
            && layout.sq_entries <= MAX_SUBMISSIONS
            && layout.cq_entries <= MAX_COMPLETIONS;
        is_sound.then_some(layout)
    }

    fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    fn sqe_bytes(&self) -> u64 {
        (SQE_BYTES << u32::from(self.has(SETUP_SQE128))) as u64
    }

    fn cqe_bytes(&self) -> u64 {
        (CQE_BYTES << u32::from(self.has(SETUP_CQE32))) as u64
    }
}

/// An operation that was submitted and has no last result yet.
#[derive(Clone, Debug)]
pub struct OpenOperation {
    pub tid: u32,
    /// Its kind is 0 where nobody wants to know of it.
    pub call: OpenCall,
    pub texts: Arc<Vec<KeptText>>,
}

impl OpenOperation {
    fn kept_bytes(&self) -> usize {
        self.texts.iter().map(|(_, bytes)| bytes.len()).sum()
    }
}

/// A submission as it lay in the ring, and what to say when it is open.
#[derive(Clone, Copy, Debug)]
pub struct Submission {
    ring: u64,
    place: u32,
    pub words: Words,
}

/// A result, and whose it is; an operation that ends without one has no result.
#[derive(Debug)]
pub struct Completion {
    pub words: Words,
    pub operation: OpenOperation,
}

/// By what the results of operations are told apart, and the order in which they were submitted.
type Key = (u64, u64);

struct Ring {
    id: u64,
    layout: Layout,
    /// Where it is mapped; 0: nowhere.
    rings: u64,
    sqes: u64,
    mapped: Vec<Range<u64>>,
    open: BTreeMap<Key, OpenOperation>,
    /// Up to where submissions were read, counted as the ring counts, and which of them the kernel may not have taken.
    read_until: u32,
    pending: Vec<(u32, Key)>,
    /// Threads that are about to submit.
    submitting: BTreeSet<u32>,
    /// Up to where results were read.
    completed: u32,
    /// Another process has it, too: results may be of what that one submitted.
    is_shared: bool,
}

impl Ring {
    fn is_polled(&self) -> bool {
        self.layout.has(SETUP_SQPOLL)
    }

    fn word(&self, read: Read, offset: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        let is_there = self.rings != 0 && read(self.rings.wrapping_add(offset), &mut bytes) == bytes.len();
        is_there.then(|| u32::from_le_bytes(bytes))
    }

    /// What lies between head and tail, `most` at most, that was not read yet.
    fn submissions(&mut self, read: Read, most: u32, descriptor: u32, unseen: &mut Unseen) -> Vec<Submission> {
        let places = (self.word(read, self.layout.sq_head.into()), self.word(read, self.layout.sq_tail.into()));
        let (Some(head), Some(tail)) = places else {
            unseen.submissions += u64::from(most);
            return Vec::new();
        };
        if self.is_polled() {
            // A thread of the kernel's takes them when it likes.
            unseen.submissions += u64::from(tail.wrapping_sub(self.read_until).min(self.layout.sq_entries));
            self.read_until = tail;
            return Vec::new();
        }
        if self.submitting.is_empty() {
            self.forget_pending(head);
            self.read_until = head;
        }
        // As the kernel does: there are never more than fit in.
        let n = tail.wrapping_sub(head).min(self.layout.sq_entries).min(most);
        let n_known = self.read_until.wrapping_sub(head);
        let mut found = Vec::new();
        for place in (if n_known <= n { n_known } else { n }..n).map(|index| head.wrapping_add(index)) {
            match self.submission(read, place, descriptor) {
                Some(one) => found.push(one),
                None => unseen.submissions += 1,
            }
            self.read_until = place.wrapping_add(1);
        }
        found
    }

    fn submission(&self, read: Read, place: u32, descriptor: u32) -> Option<Submission> {
        let layout = &self.layout;
        let mut index = place & (layout.sq_entries - 1);
        if !layout.has(SETUP_NO_SQARRAY) {
            index = self.word(read, u64::from(layout.array) + 4 * u64::from(index))?;
        }
        // Of those with entries of two sizes it is not known which are large.
        if index >= layout.sq_entries || layout.has(SETUP_SQE_MIXED) || self.sqes == 0 {
            return None;
        }
        let mut sqe = [0; SQE_BYTES];
        let at = self.sqes.wrapping_add(u64::from(index) * layout.sqe_bytes());
        (read(at, &mut sqe) == sqe.len()).then(|| Submission {
            ring: self.id,
            place,
            words: words_of(&sqe, descriptor),
        })
    }

    /// What the kernel did not take was not submitted.
    fn forget_pending(&mut self, head: u32) {
        for (place, key) in core::mem::take(&mut self.pending) {
            if place.wrapping_sub(head).cast_signed() >= 0 {
                self.open.remove(&key);
            }
        }
    }

    /// The results that came since this was asked last.
    fn completions(&mut self, read: Read, unseen: &mut Unseen) -> Vec<Completion> {
        let Some(tail) = self.word(read, self.layout.cq_tail.into()) else { return Vec::new() };
        let entries = self.layout.cq_entries;
        let n_new = tail.wrapping_sub(self.completed);
        if n_new.cast_signed() < 0 {
            // No kernel takes results back.
            self.completed = tail;
            return Vec::new();
        }
        if n_new > entries {
            unseen.completions += u64::from(n_new - entries);
            self.completed = tail.wrapping_sub(entries);
        }
        let mut read_ones = Vec::new();
        while tail.wrapping_sub(self.completed).cast_signed() > 0 {
            let place = self.completed;
            let found = self.completion(read, place);
            self.completed = place.wrapping_add(1);
            match found {
                Some((_, _, flags)) if self.layout.has(SETUP_CQE_MIXED) && flags & CQE_F_SKIP != 0 => {}
                Some(one) => {
                    read_ones.push((place, one));
                    let is_twice = self.layout.has(SETUP_CQE_MIXED) && one.2 & CQE_F_32 != 0;
                    self.completed = self.completed.wrapping_add(u32::from(is_twice));
                }
                None => unseen.completions += 1,
            }
        }
        // What came meanwhile may have been written over what was read.
        let tail = self.word(read, self.layout.cq_tail.into()).unwrap_or(tail);
        let mut taken = Vec::new();
        for (place, one) in read_ones {
            if tail.wrapping_sub(place) > entries {
                unseen.completions += 1;
                continue;
            }
            match self.settle(one) {
                Some(completion) => taken.push(completion),
                None if self.is_polled() || self.is_shared => {}
                None => unseen.submissions += 1,
            }
        }
        taken
    }

    fn completion(&self, read: Read, place: u32) -> Option<(u64, u32, u32)> {
        let index = u64::from(place & (self.layout.cq_entries - 1));
        let mut cqe = [0; CQE_BYTES];
        let at = self.rings.wrapping_add(self.layout.cqes.into()).wrapping_add(index * self.layout.cqe_bytes());
        let word = |cqe: &[u8; CQE_BYTES], at: usize| u32::from_le_bytes(core::array::from_fn(|one| cqe[at + one]));
        (read(at, &mut cqe) == cqe.len())
            .then(|| (u64::from_le_bytes(core::array::from_fn(|one| cqe[one])), word(&cqe, 8), word(&cqe, 12)))
    }

    /// Finds whose result it is: of several that can't be told apart it is the oldest one's, and said to be so.
    fn settle(&mut self, (user_data, result, flags): (u64, u32, u32)) -> Option<Completion> {
        let mut own = self.open.range((user_data, 0)..=(user_data, u64::MAX));
        let key = *own.next()?.0;
        let n_others = own.count() as u64;
        let operation = if flags & CQE_F_MORE != 0 { self.open.get(&key).cloned() } else { self.open.remove(&key) };
        let mut words = [None; word::COUNT];
        words[word::RES] = Some(i64::from(result.cast_signed()).cast_unsigned());
        words[word::CQE_FLAGS] = Some(flags.into());
        words[word::AMONG] = Some(if n_others == 0 { 0 } else { n_others + 1 });
        Some(Completion { words, operation: operation? })
    }

    /// All that is open ends without a result.
    fn give_up(&mut self) -> Vec<Completion> {
        let open = core::mem::take(&mut self.open);
        self.pending.clear();
        open.into_values().map(|operation| Completion { words: [None; word::COUNT], operation }).collect()
    }
}

/// The words of a struct io_uring_sqe.
fn words_of(sqe: &[u8; SQE_BYTES], descriptor: u32) -> Words {
    let mut words = [None; word::COUNT];
    for (word, bytes) in words[word::ENTRY..].iter_mut().zip(sqe.as_chunks().0) {
        *word = Some(u64::from_le_bytes(*bytes));
    }
    words[word::RING] = Some(descriptor.into());
    words
}

/// All rings of the process.
#[derive(Default)]
pub struct Rings {
    rings: Vec<Ring>,
    by_name: BTreeMap<Name, u64>,
    last_id: u64,
    n_submitted: u64,
    n_kept_bytes: usize,
}

impl Rings {
    pub const fn new() -> Rings {
        Rings { rings: Vec::new(), by_name: BTreeMap::new(), last_id: 0, n_submitted: 0, n_kept_bytes: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.rings.is_empty()
    }

    /// A ring was made. What is open of the one that was called so ends.
    pub fn add(&mut self, name: Name, layout: Layout) -> Vec<Completion> {
        let ended = self.remove(name);
        if self.rings.len() >= MAX_RINGS {
            return ended;
        }
        self.last_id += 1;
        let mut ring = Ring {
            id: self.last_id,
            layout,
            rings: 0,
            sqes: 0,
            mapped: Vec::new(),
            open: BTreeMap::new(),
            read_until: 0,
            pending: Vec::new(),
            submitting: BTreeSet::new(),
            completed: 0,
            is_shared: false,
        };
        if layout.has(SETUP_NO_MMAP) {
            (ring.rings, ring.sqes) = (layout.own_rings, layout.own_sqes);
        }
        self.rings.push(ring);
        self.by_name.insert(name, self.last_id);
        ended
    }

    fn remove(&mut self, name: Name) -> Vec<Completion> {
        let Some(id) = self.by_name.remove(&name) else { return Vec::new() };
        if self.by_name.values().any(|other| *other == id) {
            return Vec::new();
        }
        let Some(at) = self.rings.iter().position(|ring| ring.id == id) else { return Vec::new() };
        let ended = self.rings.swap_remove(at).give_up();
        self.let_go(&ended);
        ended
    }

    /// A ring has one more name.
    pub fn name(&mut self, known: Name, more: Name) {
        if let Some(id) = self.by_name.get(&known).copied() {
            self.by_name.insert(more, id);
        }
    }

    pub fn knows(&self, name: Name) -> bool {
        self.by_name.contains_key(&name)
    }

    /// The descriptors that rings are known by.
    pub fn descriptors(&self) -> impl Iterator<Item = u32> + '_ {
        self.by_name.keys().filter_map(|name| if let Name::Descriptor(fd) = name { Some(*fd) } else { None })
    }

    fn find(&mut self, name: Name) -> Option<&mut Ring> {
        let id = self.by_name.get(&name).copied()?;
        self.rings.iter_mut().find(|ring| ring.id == id)
    }

    /// Descriptor `fd` was mapped from its `offset` on.
    pub fn map(&mut self, fd: u32, offset: u64, memory: Range<u64>) {
        let Some(ring) = self.find(Name::Descriptor(fd)) else { return };
        match offset {
            OFFSET_SQ_RING | OFFSET_CQ_RING => ring.rings = memory.start,
            OFFSET_SQES => ring.sqes = memory.start,
            _ => return,
        }
        ring.mapped.retain(|one| one.end <= memory.start || one.start >= memory.end);
        ring.mapped.push(memory);
    }

    /// Memory is no longer what it was: the operations that nobody will see results of any more.
    pub fn unmap(&mut self, memory: &Range<u64>) -> Vec<Completion> {
        let mut ended = Vec::new();
        for ring in &mut self.rings {
            let is_in = |address: u64| memory.contains(&address);
            let gone = |one: &Range<u64>| one.start < memory.end && memory.start < one.end;
            if !ring.mapped.iter().any(gone) && !is_in(ring.rings) {
                continue;
            }
            let is_gone =
                |address: u64| is_in(address) || ring.mapped.iter().any(|one| gone(one) && one.start == address);
            let (rings, sqes) = (is_gone(ring.rings), is_gone(ring.sqes));
            ring.mapped.retain(|one| !gone(one));
            ring.sqes = if sqes { 0 } else { ring.sqes };
            if rings {
                // It is mapped twice, once for either queue.
                ring.rings = 0;
                ended.extend(ring.give_up());
            }
        }
        self.let_go(&ended);
        ended
    }

    /// What a thread is about to submit, `most` at most.
    pub fn begin(&mut self, name: Name, tid: u32, most: u32, read: Read, unseen: &mut Unseen) -> Vec<Submission> {
        let descriptor = match name {
            Name::Descriptor(fd) => fd,
            Name::Registered { index, .. } => index,
        };
        let Some(ring) = self.find(name) else { return Vec::new() };
        let found = ring.submissions(read, most, descriptor, unseen);
        ring.submitting.insert(tid);
        found
    }

    /// An operation is open from here on. Whether there is room for it.
    pub fn open(&mut self, submission: &Submission, operation: OpenOperation) -> bool {
        let n_open: usize = self.rings.iter().map(|ring| ring.open.len()).sum();
        let n_bytes = operation.kept_bytes();
        if n_open >= MAX_OPEN || self.n_kept_bytes + n_bytes > MAX_KEPT_BYTES {
            return false;
        }
        let Some(ring) = self.rings.iter_mut().find(|ring| ring.id == submission.ring) else { return false };
        self.n_submitted += 1;
        let key = (submission.words[word::USER_DATA].unwrap_or_default(), self.n_submitted);
        ring.open.insert(key, operation);
        ring.pending.push((submission.place, key));
        self.n_kept_bytes += n_bytes;
        true
    }

    /// A thread has submitted what the kernel took of it. Whether the ring is known.
    pub fn end(&mut self, name: Name, tid: u32, read: Read) -> bool {
        let Some(ring) = self.find(name) else { return false };
        ring.submitting.remove(&tid);
        if ring.submitting.is_empty() && !ring.is_polled() {
            if let Some(head) = ring.word(read, ring.layout.sq_head.into()) {
                ring.forget_pending(head);
                ring.read_until = head;
            }
        }
        self.count_kept();
        true
    }

    /// All results that came since this was asked last.
    pub fn completions(&mut self, read: Read, unseen: &mut Unseen) -> Vec<Completion> {
        let mut found = Vec::new();
        for ring in &mut self.rings {
            found.extend(ring.completions(read, unseen));
            if ring.is_polled() {
                ring.submissions(read, 0, 0, unseen);
            }
        }
        self.let_go(&found);
        found
    }

    /// The process ends: so does what is open.
    pub fn give_up(&mut self) -> Vec<Completion> {
        let ended = self.rings.iter_mut().flat_map(Ring::give_up).collect();
        self.n_kept_bytes = 0;
        ended
    }

    /// This is a child now: what is open is its parent's.
    pub fn begin_child(&mut self, read: Read) {
        for ring in &mut self.rings {
            ring.give_up();
            ring.submitting.clear();
            ring.is_shared = true;
            ring.completed = ring.word(read, ring.layout.cq_tail.into()).unwrap_or(ring.completed);
            ring.read_until = ring.word(read, ring.layout.sq_tail.into()).unwrap_or(ring.read_until);
        }
        self.n_kept_bytes = 0;
    }

    fn let_go(&mut self, ended: &[Completion]) {
        if !ended.is_empty() {
            self.count_kept();
        }
    }

    fn count_kept(&mut self) {
        if self.n_kept_bytes != 0 {
            let open = self.rings.iter().flat_map(|ring| ring.open.values());
            self.n_kept_bytes = open.map(OpenOperation::kept_bytes).sum();
        }
    }
}

#[cfg(test)]
#[path = "rings_tests.rs"]
mod tests;
