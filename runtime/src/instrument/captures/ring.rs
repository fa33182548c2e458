//! One ring of io_uring: what was submitted to it, and which results came.
//!
//! Kernel and program write to a ring at any time, the program maybe anything: all that is read there is bounded by what the kernel allows,
//! and what can't be told is counted (`Unseen`). Pure, but for reading memory.

extern crate alloc;
use super::open_calls::OpenCall;
use super::ring_layout::{
    Layout, CQE_BYTES, SETUP_CQE_MIXED, SETUP_NO_MMAP, SETUP_NO_SQARRAY, SETUP_SQE_MIXED, SETUP_SQPOLL, SQE_BYTES,
};
use super::text_cells::KeptText;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

/// What forms call registers: numbers of an operation's words.
pub mod word {
    /// The first of the words of eight bytes that its entry has.
    pub const ENTRY: usize = 0;
    pub const USER_DATA: usize = 4;
    /// The ring's descriptor, as the thread named it; of one that it registered the one that it is known by.
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

pub const CQE_F_MORE: u32 = 1 << 1;
/// Of a ring with results of two sizes: nothing is here; it is twice as large.
const CQE_F_SKIP: u32 = 1 << 5;
const CQE_F_32: u32 = 1 << 15;

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

/// An operation that was submitted and has no last result yet.
#[derive(Clone, Debug)]
pub struct OpenOperation {
    pub tid: u32,
    /// Its kind is 0 where nobody wants to know of it.
    pub call: OpenCall,
    pub texts: Arc<Vec<KeptText>>,
}

impl OpenOperation {
    pub fn kept_bytes(&self) -> usize {
        self.texts.iter().map(|(_, bytes)| bytes.len()).sum()
    }
}

/// A submission as it lay in the ring, and what to say when it is open.
#[derive(Clone, Copy, Debug)]
pub struct Submission {
    pub ring: u64,
    pub place: u32,
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

pub struct Ring {
    pub id: u64,
    pub layout: Layout,
    /// Where it is mapped; 0: nowhere.
    pub rings: u64,
    pub sqes: u64,
    pub mapped: Vec<Range<u64>>,
    pub open: BTreeMap<Key, OpenOperation>,
    /// Up to where submissions were read, counted as the ring counts, and which of them the kernel may not have taken.
    pub read_until: u32,
    pub pending: Vec<(u32, Key)>,
    /// Threads that are about to submit.
    pub submitting: BTreeSet<u32>,
    /// Up to where results were read.
    pub completed: u32,
    /// Another process has it, too: results may be of what that one submitted.
    pub is_shared: bool,
}

impl Ring {
    /// One that was just made, and is mapped nowhere yet, unless the program has its memory.
    pub fn new(id: u64, layout: Layout) -> Ring {
        let (rings, sqes) = if layout.has(SETUP_NO_MMAP) { (layout.own_rings, layout.own_sqes) } else { (0, 0) };
        Ring {
            id,
            layout,
            rings,
            sqes,
            mapped: Vec::new(),
            open: BTreeMap::new(),
            read_until: 0,
            pending: Vec::new(),
            submitting: BTreeSet::new(),
            completed: 0,
            is_shared: false,
        }
    }

    /// It has other sizes from now on, and lies elsewhere: what was mapped before shows nothing of it any more. Counts go on.
    pub fn resize(&mut self, layout: Layout) {
        self.layout = self.layout.resized(layout);
        self.mapped.clear();
        let has_own = self.layout.has(SETUP_NO_MMAP);
        (self.rings, self.sqes) = if has_own { (layout.own_rings, layout.own_sqes) } else { (0, 0) };
    }

    pub fn is_polled(&self) -> bool {
        self.layout.has(SETUP_SQPOLL)
    }

    pub fn word(&self, read: Read, offset: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        let is_there = self.rings != 0 && read(self.rings.wrapping_add(offset), &mut bytes) == bytes.len();
        is_there.then(|| u32::from_le_bytes(bytes))
    }

    /// What lies between head and tail, `most` at most, that was not read yet.
    pub fn submissions(
        &mut self,
        read: Read,
        most: u32,
        descriptor: Option<u32>,
        unseen: &mut Unseen,
    ) -> Vec<Submission> {
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

    fn submission(&self, read: Read, place: u32, descriptor: Option<u32>) -> Option<Submission> {
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
    pub fn forget_pending(&mut self, head: u32) {
        for (place, key) in core::mem::take(&mut self.pending) {
            if place.wrapping_sub(head).cast_signed() >= 0 {
                self.open.remove(&key);
            }
        }
    }

    /// The results that came since this was asked last.
    pub fn completions(&mut self, read: Read, unseen: &mut Unseen) -> Vec<Completion> {
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

    /// What is open, as if it ended without a result.
    pub fn all_open(&self) -> impl Iterator<Item = Completion> + '_ {
        self.open.values().map(|one| Completion { words: [None; word::COUNT], operation: one.clone() })
    }

    /// All that is open ends without a result.
    pub fn give_up(&mut self) -> Vec<Completion> {
        let open = core::mem::take(&mut self.open);
        self.pending.clear();
        open.into_values().map(|operation| Completion { words: [None; word::COUNT], operation }).collect()
    }
}

/// The words of a struct io_uring_sqe.
fn words_of(sqe: &[u8; SQE_BYTES], descriptor: Option<u32>) -> Words {
    let mut words = [None; word::COUNT];
    for (word, bytes) in words[word::ENTRY..].iter_mut().zip(sqe.as_chunks().0) {
        *word = Some(u64::from_le_bytes(*bytes));
    }
    words[word::RING] = descriptor.map(u64::from);
    words
}
