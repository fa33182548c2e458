//! Which blocks the controller is asked about before they are translated, and what it said.
//!
//! Runs under the runtime's lock; asking itself does not (dispatch/apart/transforms.rs).

extern crate alloc;
use super::super::kinds::{hash, kind_of};
use super::changes::Changes;
use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::decode::{decode_block, Block, Ending};
use crate::instrument::request::Request;
use crate::instrument::{BuildError, Engine};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::ops::Bound;

/// What was said of a block.
struct Answer {
    code_hash: u64,
    end: AppPc,
    changes: Option<Arc<Changes>>,
}

/// Cuts a block behind so many bytes, as it was where a critical section begins. Returns how it ends now.
fn cut_to(block: &mut Block, ending: Ending, size_bytes: u64) -> Ending {
    let end = block.pc + size_bytes;
    match (1..block.count()).find(|index| block.pc_of(*index) == end) {
        Some(index) => {
            block.truncate(index);
            Ending::Limit
        }
        None => ending,
    }
}

/// What was asked, and said.
#[derive(Default)]
pub struct Transforms {
    ticket: u32,
    by_pc: BTreeMap<AppPc, Answer>,
    /// Where a block goes on that was cut: its start.
    pieces: BTreeMap<AppPc, AppPc>,
}

impl Transforms {
    pub const fn new() -> Transforms {
        Transforms { ticket: 0, by_pc: BTreeMap::new(), pieces: BTreeMap::new() }
    }

    /// Forgets what was said of blocks with code from `start` up to `end`.
    pub fn forget(&mut self, start: AppPc, end: AppPc) {
        if !self.by_pc.is_empty() {
            self.by_pc.retain(|pc, answer| answer.end <= start || end <= *pc);
        }
    }

    /// The block of which that at `pc` is a part, or was when it was asked about.
    fn whole_of(&self, pc: AppPc) -> Option<&Answer> {
        self.by_pc.get(&pc).or_else(|| self.by_pc.get(self.pieces.get(&pc)?))
    }

    /// What a block is changed by that holds the instruction at `pc`, if any does.
    fn around(&self, pc: AppPc) -> Option<&Answer> {
        let before = |limit| self.by_pc.range((Bound::Unbounded, limit)).next_back();
        self.whole_of(pc)
            .or_else(|| before(Bound::Excluded(pc)).map(|(_, answer)| answer).filter(|answer| pc < answer.end))
    }
}

impl Engine {
    /// Asks about other blocks from now on, if the controller has it so: everything is to be translated anew then.
    pub fn follow_transforms(&mut self) -> bool {
        let (ticket, ranges) = self.shared.transform_ranges();
        if ticket == self.transforms.ticket {
            return false;
        }
        self.transforms = Transforms { ticket, ..Transforms::new() };
        self.ranges.rewritten =
            ranges.into_iter().map(|(start, end)| (AppPc::from_raw(start), AppPc::from_raw(end))).collect();
        true
    }

    /// What is changed in a block that is about to be translated, before it is cut; `Err`: that is to be asked.
    pub fn changes_of(&self, request: &Request, block: &Block) -> Result<Option<Arc<Changes>>, BuildError> {
        // Who waits inside a critical section is aborted, and would ask again each time: these are not shown, wherever their code lies.
        if !self.ranges.is_rewritten(block.pc, block.pc + 1) || self.cache.rseqs.find(block.pc).is_some() {
            return Ok(None);
        }
        if request.is_once() {
            return Ok(self.transforms.around(block.pc).and_then(|answer| answer.changes.clone()));
        }
        if let Some(answer) = self.transforms.by_pc.get(&block.pc) {
            if answer.code_hash == hash(&block.code) {
                return Ok(answer.changes.clone());
            }
        } else if let Some(answer) = self.transforms.whole_of(block.pc) {
            return Ok(answer.changes.clone());
        }
        Err(BuildError::Untransformed(block.size_bytes() as u16))
    }

    /// Takes note that a block was cut, and goes on at `pc`: nobody is asked about that.
    pub fn note_piece(&mut self, start: AppPc, pc: AppPc) {
        if self.ranges.is_rewritten(start, start + 1) {
            let whole = self.transforms.pieces.get(&start).copied().unwrap_or(start);
            self.transforms.pieces.insert(pc, whole);
        }
    }

    /// Takes note of what the controller said of the block at `pc` of so many bytes: `None` if it said nothing.
    ///
    /// Where there is another block meanwhile, that is asked about when it is translated.
    pub fn learn_changes(&mut self, writer: &RingWriter, pc: AppPc, size_bytes: u16, said: Option<&[u8]>) {
        writer.shared.add(crate::status_field!(blocks_asked), 1);
        let mut block = core::mem::take(&mut self.block);
        if let Ok(ending) = decode_block(&mut block, &self.ranges, pc) {
            let ending = cut_to(&mut block, ending, u64::from(size_bytes));
            if block.size_bytes() == u64::from(size_bytes) {
                let kind = kind_of(ending, self.features.has_transactions);
                let changes = said.map(|bytes| Changes::parse(bytes, &block, ending, kind));
                if matches!(changes, Some(None)) {
                    writer.shared.add(crate::status_field!(blocks_refused), 1);
                }
                let changes = changes.flatten().filter(|changes| !changes.is_empty()).map(Arc::new);
                self.transforms.by_pc.insert(pc, Answer { code_hash: hash(&block.code), end: block.end(), changes });
            }
        }
        self.block = block;
    }
}
