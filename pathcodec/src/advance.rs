//! Going on by many blocks at once: a stretch that comes back to where it was is done as often in one step as what is recorded
//! of it repeats itself.

use crate::protocol::{Limit, Position, Progress, NOWHERE};
use crate::source::Stop;
use crate::surprises::MAX_BYTES;
use crate::walk::Walker;

impl Limit {
    /// As far as the path goes.
    pub const NONE: Limit = Limit {
        most: Progress { instructions: u64::MAX, blocks: u64::MAX, hits: u64::MAX },
        surprise_bytes: u64::MAX,
        decisions: u64::MAX,
        counted: NOWHERE,
        reserved: 0,
    };

    fn is_reached(&self, position: Position) -> bool {
        (position.surprise_bytes, position.decisions) >= (self.surprise_bytes, self.decisions)
    }

    /// How often the path may go on by `once` from `now`, and still come to no place behind this one.
    fn times_before(&self, now: Position, once: Position) -> u64 {
        let before = |ahead: u64, by: u64| ahead.saturating_sub(1).checked_div(by).unwrap_or(u64::MAX);
        if once.surprise_bytes > 0 {
            before(self.surprise_bytes.saturating_sub(now.surprise_bytes), once.surprise_bytes)
        } else if now.surprise_bytes >= self.surprise_bytes {
            before(self.decisions.saturating_sub(now.decisions), once.decisions)
        } else {
            u64::MAX
        }
    }
}

/// Where a stretch began that may come back.
#[derive(Clone, Copy)]
struct Anchor<'a> {
    block: u32,
    position: Position,
    /// What was not read yet of the streams.
    rest: [&'a [u8]; 2],
    done: Progress,
    /// The fewest open calls since.
    lowest: u64,
    /// Steps since, and at how many the anchor is cast anew: twice as many each time (Brent's algorithm).
    age: u64,
    patience: u64,
}

impl<'a> Walker<'a> {
    /// Executes blocks as long as these are no more, have no more instructions, are not more often block `counted`, and
    /// come no farther than `limit` says. What they were, and why there is no next one if it is not for that.
    pub fn advance(&mut self, limit: &Limit) -> (Progress, Option<Stop>) {
        let most = limit.most;
        let mut done = Progress::default();
        // Where only decisions were made since, and where streams were read as well: loops in loops have both.
        let mut near = self.cast_anchor(done, 1);
        let mut far = near;
        let mut next_event = self.next_event();
        loop {
            let (index, size) = match self.settle() {
                Ok(()) => match self.code().block_at(self.block()) {
                    Some((index, block)) => (index, u64::from(block.n_instructions)),
                    None => (NOWHERE, 0),
                },
                Err(stop) => return (done, Some(stop)),
            };
            let is_hit = index == limit.counted;
            if done.instructions + size > most.instructions
                || done.blocks == most.blocks
                || (is_hit && done.hits == most.hits)
                || limit.is_reached(self.position())
            {
                return (done, None);
            }
            let before = self.bytes_read();
            if let Err(stop) = self.step_settled() {
                return (done, Some(stop));
            }
            done.instructions += size;
            done.blocks += 1;
            done.hits += u64::from(is_hit);
            if self.next_event() != next_event {
                next_event = self.next_event();
                near = self.cast_anchor(done, 1);
                far = near;
                continue;
            }
            let depth = self.stack().depth();
            far.lowest = far.lowest.min(depth);
            if self.bytes_read() == before {
                near.lowest = near.lowest.min(depth);
                self.look_back(&mut near, &mut done, limit);
            } else {
                self.look_back(&mut far, &mut done, limit);
                near = self.cast_anchor(done, 1);
            }
        }
    }

    /// Goes on by what repeats, if the walk is back at the anchor, and casts that anew where it is time.
    #[inline]
    fn look_back(&mut self, anchor: &mut Anchor<'a>, done: &mut Progress, limit: &Limit) {
        anchor.age += 1;
        if self.block() == anchor.block && self.is_back_at(anchor) {
            self.repeat(anchor, done, limit);
            *anchor = self.cast_anchor(*done, anchor.patience);
        } else if anchor.age == anchor.patience {
            *anchor = self.cast_anchor(*done, 2 * anchor.patience);
        }
    }

    fn cast_anchor(&self, done: Progress, patience: u64) -> Anchor<'a> {
        let (block, position, lowest) = (self.block(), self.position(), self.stack().depth());
        Anchor { block, position, rest: self.source().rest(), done, lowest, age: 0, patience }
    }

    fn is_back_at(&self, anchor: &Anchor) -> bool {
        let now = self.position();
        let is_same_place = now.depth == anchor.position.depth && anchor.lowest >= now.depth;
        // Behind a surprise the next one is as far away only if as many decisions were made.
        is_same_place
            && (now.surprise_bytes == anchor.position.surprise_bytes || now.decisions == anchor.position.decisions)
    }

    /// Does what was done since the anchor as often as it repeats itself and no event comes.
    fn repeat(&mut self, anchor: &Anchor, done: &mut Progress, limit: &Limit) {
        let (now, most) = (self.position(), limit.most);
        let once = Position {
            surprise_bytes: now.surprise_bytes - anchor.position.surprise_bytes,
            decisions: now.decisions.saturating_sub(anchor.position.decisions),
            symbol_bytes: now.symbol_bytes - anchor.position.symbol_bytes,
            depth: 0,
        };
        let executed = Progress {
            instructions: done.instructions - anchor.done.instructions,
            blocks: done.blocks - anchor.done.blocks,
            hits: done.hits - anchor.done.hits,
        };
        let by_instructions = (most.instructions - done.instructions).checked_div(executed.instructions);
        let by_blocks = (most.blocks - done.blocks).checked_div(executed.blocks).unwrap_or(0);
        let by_hits = (most.hits - done.hits).checked_div(executed.hits);
        let mut times = by_instructions.unwrap_or(u64::MAX).min(by_blocks).min(by_hits.unwrap_or(u64::MAX));
        times = times.min(limit.times_before(now, once));
        if once.surprise_bytes == 0 && once.decisions > 0 {
            times = times.min(self.decisions_ahead() / once.decisions);
        }
        if let Some(event) = self.event_ahead() {
            let before = |ahead: u64, by: u64| ahead.saturating_sub(1).checked_div(by).unwrap_or(u64::MAX);
            if event.surprise_bytes > now.surprise_bytes {
                times = times.min(before(event.surprise_bytes - now.surprise_bytes, once.surprise_bytes));
            } else if once.decisions == 0 || once.surprise_bytes > 0 {
                times =
                    times.min(before(event.symbol_bytes.saturating_sub(now.symbol_bytes), once.symbol_bytes.max(1)));
                times = if once.surprise_bytes > 0 { 0 } else { times };
            }
        }
        let [surprises, symbols] = self.source().rest();
        // The surprise behind the last turn is to be the same, too: the turn ends before it.
        times = times.min(count_turns(anchor.rest[0], surprises, once.surprise_bytes, MAX_BYTES, times));
        times = times.min(count_turns(anchor.rest[1], symbols, once.symbol_bytes, 0, times));
        if once.surprise_bytes == 0 && once.decisions == 0 && once.symbol_bytes == 0 {
            return;
        }
        self.pass(Position {
            surprise_bytes: times * once.surprise_bytes,
            decisions: times * once.decisions,
            symbol_bytes: times * once.symbol_bytes,
            depth: 0,
        });
        done.instructions += times * executed.instructions;
        done.blocks += times * executed.blocks;
        done.hits += times * executed.hits;
    }
}

/// How many more turns, at most `most`, read the same bytes as the one that read `size` of `before` and came to `now`; `behind`
/// more are to be the same after the last one.
fn count_turns(before: &[u8], now: &[u8], size: u64, behind: usize, most: u64) -> u64 {
    if size == 0 {
        return most;
    }
    let wanted = most.saturating_mul(size).saturating_add(behind as u64).min(now.len() as u64) as usize;
    let same = count_same(&before[..wanted.min(before.len())], &now[..wanted]);
    same.saturating_sub(behind) as u64 / size
}

/// How many bytes two pieces have in common at their starts.
fn count_same(one: &[u8], other: &[u8]) -> usize {
    const AT_ONCE: usize = 64;
    let pairs = one.chunks_exact(AT_ONCE).zip(other.chunks_exact(AT_ONCE));
    let whole = pairs.take_while(|(a, b)| a == b).count() * AT_ONCE;
    let rest = one[whole..].iter().zip(&other[whole..]);
    whole + rest.take_while(|(a, b)| a == b).count()
}
