//! The process' rings of io_uring, by the names that threads have for them, and where they lie.
//!
//! What is read there is bounded as a ring's is (ring.rs). Offsets are those of include/uapi/linux/io_uring.h.

extern crate alloc;
use super::ring::{word, Completion, OpenOperation, Read, Ring, Submission, Unseen};
use super::ring_layout::Layout;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

/// Where mmap of a ring's descriptor shows what (IORING_OFF_*).
const OFFSET_SQ_RING: u64 = 0;
const OFFSET_CQ_RING: u64 = 0x800_0000;
const OFFSET_SQES: u64 = 0x1000_0000;

/// So many operations are open at most, of all rings, and so many bytes are kept of them.
const MAX_OPEN: usize = 1 << 14;
const MAX_KEPT_BYTES: usize = 1 << 22;
const MAX_RINGS: usize = 1 << 10;

/// Which ring a thread means: by a descriptor, or by an index of those that it registered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Name {
    Descriptor(u32),
    Registered { tid: u32, index: u32 },
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
        self.rings.push(Ring::new(self.last_id, layout));
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

    /// A descriptor of the ring that a thread calls so.
    pub fn descriptor_of(&self, name: Name) -> Option<u32> {
        let id = self.by_name.get(&name)?;
        let others = self.by_name.iter().filter(|(_, own)| *own == id);
        others.filter_map(|(other, _)| if let Name::Descriptor(fd) = other { Some(*fd) } else { None }).next()
    }

    /// A ring has other sizes, and is elsewhere.
    pub fn resize(&mut self, name: Name, layout: Layout) {
        if let Some(ring) = self.find(name) {
            ring.resize(layout);
        }
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

    /// What a thread is about to submit, `most` at most, to the ring that it calls so, and that has that descriptor.
    pub fn begin(
        &mut self,
        (name, descriptor): (Name, Option<u32>),
        tid: u32,
        most: u32,
        read: Read,
        unseen: &mut Unseen,
    ) -> Vec<Submission> {
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
                ring.submissions(read, 0, None, unseen);
            }
        }
        self.let_go(&found);
        found
    }

    /// What is open in all of them, as if it ended.
    pub fn all_open(&self) -> Vec<Completion> {
        self.rings.iter().flat_map(Ring::all_open).collect()
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
