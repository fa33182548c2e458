//! Going on by many blocks at once: a stretch that comes back to where it was, and decided nothing else, is done so many times
//! in one step.

use crate::event::Position;
use crate::walk::{Stop, Walker};

/// What was executed on the way.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub instructions: u64,
    pub blocks: u64,
}

/// Where a stretch began that may come back.
#[derive(Clone, Copy)]
struct Anchor {
    block: u32,
    position: Position,
    next_event: usize,
    done: Progress,
    /// The fewest open calls since.
    lowest: u64,
    /// Blocks since, and at how many the anchor is cast anew: twice as many each time (Brent's algorithm).
    age: u64,
    patience: u64,
}

impl Walker<'_> {
    /// Executes blocks as long as no more than `instructions` are executed. What they were, and why there is no next one
    /// if it is not for that.
    pub fn advance(&mut self, instructions: u64) -> (Progress, Option<Stop>) {
        let mut done = Progress::default();
        let mut anchor = self.cast_anchor(done, 1);
        loop {
            let size = match self.settle() {
                Ok(()) => self.code().block(self.block()).map_or(0, |block| u64::from(block.n_instructions)),
                Err(stop) => return (done, Some(stop)),
            };
            if done.instructions + size > instructions {
                return (done, None);
            }
            if let Err(stop) = self.step() {
                return (done, Some(stop));
            }
            done.instructions += size;
            done.blocks += 1;
            anchor.lowest = anchor.lowest.min(self.stack().depth());
            anchor.age += 1;
            if !self.has_only_decided_since(&anchor) {
                anchor = self.cast_anchor(done, 1);
            } else if self.is_back_at(&anchor) {
                self.repeat(&anchor, &mut done, instructions);
                anchor = self.cast_anchor(done, anchor.patience);
            } else if anchor.age == anchor.patience {
                anchor = self.cast_anchor(done, 2 * anchor.patience);
            }
        }
    }

    fn cast_anchor(&self, done: Progress, patience: u64) -> Anchor {
        let (block, position, lowest) = (self.block(), self.position(), self.stack().depth());
        Anchor { block, position, next_event: self.next_event(), done, lowest, age: 0, patience }
    }

    fn has_only_decided_since(&self, anchor: &Anchor) -> bool {
        let now = self.position();
        now.surprise_bytes == anchor.position.surprise_bytes
            && now.symbol_bytes == anchor.position.symbol_bytes
            && self.next_event() == anchor.next_event
    }

    fn is_back_at(&self, anchor: &Anchor) -> bool {
        let depth = self.stack().depth();
        self.block() == anchor.block && depth == anchor.position.depth && anchor.lowest >= depth
    }

    /// Does what was done since the anchor as often as nothing else happens.
    fn repeat(&mut self, anchor: &Anchor, done: &mut Progress, instructions: u64) {
        let decisions = self.position().decisions - anchor.position.decisions;
        let once = Progress {
            instructions: done.instructions - anchor.done.instructions,
            blocks: done.blocks - anchor.done.blocks,
        };
        let Some(by_decisions) = self.decisions_ahead().checked_div(decisions) else {
            return;
        };
        let by_instructions = (instructions - done.instructions).checked_div(once.instructions).unwrap_or(0);
        let times = by_decisions.min(by_instructions);
        self.pass_decisions(times * decisions);
        done.instructions += times * once.instructions;
        done.blocks += times * once.blocks;
    }
}
