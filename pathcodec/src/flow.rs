//! Events out of a path: what the thread did, block by block, as rows. The path may still grow: what is known of it ends
//! somewhere, and reading goes on from there when more is.

use crate::accesses::{Accesses, Row};
use crate::protocol::{ending, flow_kind, gate, AccessRow, BegunBlock, BlockDetail, FlowEvent, Position, ToldEvent};
use crate::source::Stop;
use crate::walk::Walker;
use core::ops::Range;

/// What events say of blocks. It comes from the target as much as the code does: every number is checked where it is used.
#[derive(Clone, Copy)]
pub struct Details<'a> {
    pub blocks: &'a [BlockDetail],
    pub starts: &'a [u16],
    /// Time stamps of the path's events.
    pub times: &'a [u64],
    /// What is told of each of them; empty: nothing.
    pub told: &'a [ToldEvent],
}

/// How far a reading has come, beside where its walk is.
#[derive(Clone, Copy)]
pub struct Progress<'a> {
    pub begun: BegunBlock,
    pub sequence: u64,
    pub time: u64,
    /// Whether what the thread does is told, by the gates that it came to.
    pub is_open: bool,
    pub accesses: Accesses<'a>,
}

/// What is asked for.
#[derive(Clone, Copy)]
pub struct Question {
    pub thread: u32,
    /// Bits by kind.
    pub kinds: u32,
    /// The path is known up to so many bytes of surprises, and decisions behind the last one.
    pub known: (u64, u64),
}

impl Question {
    fn wants(&self, kind: u8) -> bool {
        self.kinds >> kind & 1 != 0
    }
}

/// Rows that one block takes beside its instructions': a block that was left behind, it, a call or return.
const MOST_ROWS: usize = 3;

/// Reads on along `walker` into `rows`. How many were written, and why there are no more; `None`: there was no room.
///
/// `IS_ACCESSING`: there are accesses of what is executed, or may be. What asks for them is left out of the code otherwise.
pub fn read_flow<R: Row, const IS_ACCESSING: bool>(
    walker: &mut Walker,
    details: Details,
    question: Question,
    progress: &mut Progress,
    rows: &mut [R],
) -> (usize, Option<Stop>) {
    let Progress { sequence, time, is_open, accesses, .. } = *progress;
    let mut out = Rows::<R, IS_ACCESSING> { rows, n: 0, question, sequence, time, is_open, accesses };
    let stop = read_into(walker, details, progress, &mut out);
    (progress.sequence, progress.time, progress.accesses) = (out.sequence, out.time, out.accesses);
    progress.is_open = out.is_open;
    (out.n, stop)
}

fn read_into<R: Row, const IS_ACCESSING: bool>(
    walker: &mut Walker,
    details: Details,
    progress: &mut Progress,
    out: &mut Rows<'_, '_, R, IS_ACCESSING>,
) -> Option<Stop> {
    let question = out.question;
    let (tells_instructions, tells_accesses) = (question.wants(flow_kind::EXEC), question.wants(flow_kind::MEMORY));
    let mut n_events = walker.next_event();
    // Kept apart from what it is copied to: rows are written in between.
    let mut begun = progress.begun;
    let (mut loops, mut goes_back) = (Turns::default(), false);
    let stop = loop {
        if goes_back && !IS_ACCESSING && !loops.pass_turns(walker, question.known, out.told()) {
            loops.begin(walker, out.told());
        }
        let n_here = if details.told.is_empty() { 0 } else { walker.n_events_here() };
        if out.left() < MOST_ROWS + n_here {
            break if n_here + MOST_ROWS > out.rows.len() { Some(Stop::Damaged) } else { None };
        }
        if !walker.is_known(question.known) {
            break Some(Stop::Cut);
        }
        if let Err(stop) = out.settle(walker, details, &mut begun, &mut n_events) {
            break stop;
        }
        let Some((index, block)) = walker.code().block_at(walker.block()) else {
            break Some(Stop::Damaged);
        };
        let block = *block;
        let (pc, end_pc, n_instructions, ending) = (block.pc, block.end_pc, block.n_instructions, block.ending);
        let Some(detail) = details.blocks.get(index as usize).copied() else {
            break Some(Stop::Damaged);
        };
        let is_open = out.is_open_behind(detail.gate);
        let is_wanted = is_open && detail.is_wanted != 0;
        if begun.end != 0 && (begun.end != pc || !is_wanted) {
            out.end_block(&mut begun);
        }
        let starts = match IS_ACCESSING || tells_instructions && is_wanted {
            true => details.starts_of(&detail, n_instructions),
            false => &[],
        };
        let n_accesses = if IS_ACCESSING { out.accesses.count_within(pc, end_pc, starts) } else { 0 };
        if out.left() < MOST_ROWS + starts.len() + n_accesses {
            // More than there will ever be room for are no accesses of one block.
            break if n_accesses + starts.len() + MOST_ROWS > out.rows.len() { Some(Stop::Damaged) } else { None };
        }
        let depth = walker.stack().depth();
        if let Err(stop) = walker.execute(index, &block) {
            break Some(stop);
        }
        out.is_open = is_open;
        let next = walker.next_pc();
        loops.leave(ending, depth);
        goes_back = next <= pc && matches!(ending, ending::CONDITIONAL | ending::BACK_JUMP);
        let accesses = if IS_ACCESSING { out.accesses.take(n_accesses) } else { &[] };
        if !is_wanted {
            continue;
        }
        let told = if tells_accesses { accesses } else { &[] };
        if tells_instructions {
            out.add_instructions(pc, end_pc, starts, next, depth, told);
        } else if IS_ACCESSING {
            out.add_accesses(told, depth);
        }
        if begun.end == 0 {
            begun = BegunBlock { address: pc, end: 0, n_instructions: 0, depth };
        }
        begun.end = end_pc;
        begun.n_instructions += u64::from(n_instructions);
        if detail.goes_on != 0 {
            continue;
        }
        out.leave_block(&mut begun, next);
        let kind = match ending {
            ending::CALL | ending::INDIRECT_CALL => flow_kind::CALL,
            ending::RETURN => flow_kind::RET,
            _ => continue,
        };
        if question.wants(kind) {
            out.add(kind, detail.branch_pc, next, end_pc.wrapping_sub(detail.branch_pc) as u32, 1, depth);
        }
    };
    progress.begun = begun;
    stop
}

/// Where a loop went back last. What nobody wants to know of, and goes as expected, is done many times at once.
#[derive(Default)]
struct Turns {
    block: u32,
    position: Position,
    told: Told,
    n_events: usize,
    is_begun: bool,
}

/// How much was told, and whether what comes next is: the same behind a turn as before, and so is the next turn.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Told {
    sequence: u64,
    is_open: bool,
}

impl Turns {
    /// The thread went back to the block that `walker` is in front of, and so much was told before.
    fn begin(&mut self, walker: &Walker, told: Told) {
        let (block, position, n_events) = (walker.block(), walker.position(), walker.next_event());
        *self = Turns { block, position, told, n_events, is_begun: true };
    }

    /// A block ended so, with so many calls open before: a return leaves the loop, if that is in one of them.
    #[inline]
    fn leave(&mut self, ending: u8, depth: u64) {
        self.is_begun &= ending != ending::RETURN || depth > self.position.depth;
    }

    /// Whether it came back to where it was before, with nothing told or read on the way: then it has done that as often as
    /// it goes on so.
    fn pass_turns(&mut self, walker: &mut Walker, known: (u64, u64), told: Told) -> bool {
        let now = walker.position();
        let is_turn = self.is_begun
            && (self.block, self.told, self.n_events) == (walker.block(), told, walker.next_event())
            && Position { decisions: now.decisions, ..self.position } == now
            && now.decisions > self.position.decisions;
        if !is_turn {
            return false;
        }
        let by = now.decisions - self.position.decisions;
        // As far as anything is known: up to the next event, or the last decision that was told.
        let mut ahead = walker.decisions_ahead();
        if walker.event_ahead().is_none() && now.surprise_bytes >= known.0 {
            ahead = ahead.min(known.1.saturating_sub(now.decisions));
        }
        let n_turns = ahead / by;
        walker.pass(Position { decisions: n_turns * by, ..Position::default() });
        self.is_begun = false;
        true
    }
}

impl<'a> Details<'a> {
    fn starts_of(&self, detail: &BlockDetail, n_instructions: u32) -> &'a [u16] {
        let (first, n) = (detail.first_start as usize, n_instructions as usize);
        first.checked_add(n).and_then(|end| self.starts.get(first..end)).unwrap_or(&[])
    }
}

struct Rows<'a, 'b, R, const IS_ACCESSING: bool> {
    rows: &'a mut [R],
    n: usize,
    question: Question,
    sequence: u64,
    time: u64,
    is_open: bool,
    accesses: Accesses<'b>,
}

impl<R: Row, const IS_ACCESSING: bool> Rows<'_, '_, R, IS_ACCESSING> {
    fn left(&self) -> usize {
        self.rows.len() - self.n
    }

    #[inline]
    fn told(&self) -> Told {
        Told { sequence: self.sequence, is_open: self.is_open }
    }

    /// Whether what the thread does in a block with this gate is told. What lies before anybody asked opens nothing, and closes nothing.
    #[inline]
    fn is_open_behind(&self, gate: u8) -> bool {
        match gate {
            gate::OPENS if self.question.kinds != 0 => true,
            gate::CLOSES if self.question.kinds != 0 => false,
            _ => self.is_open,
        }
    }

    #[inline]
    fn add(&mut self, kind: u8, address: u64, target: u64, size: u32, n_instructions: u16, depth: u64) {
        let (sequence, time, thread) = (self.sequence, self.time, self.question.thread);
        let depth = u32::try_from(depth).unwrap_or(u32::MAX);
        let event = FlowEvent { sequence, address, target, time, thread, depth, size, n_instructions, kind, access: 0 };
        self.push(event, 0);
    }

    #[inline]
    fn push(&mut self, event: FlowEvent, value: u64) {
        if let Some(row) = self.rows.get_mut(self.n) {
            *row = R::of(event, value);
            self.n += 1;
            self.sequence += 1;
        }
    }

    /// Adds what instructions did with memory.
    #[inline]
    fn add_accesses(&mut self, rows: &[AccessRow], depth: u64) {
        let depth = u32::try_from(depth).unwrap_or(u32::MAX);
        for row in rows.iter().filter(|row| row.is_any()) {
            let (size, value) = row.content();
            let event = FlowEvent {
                sequence: self.sequence,
                address: row.pc(),
                target: row.address,
                time: self.time,
                thread: self.question.thread,
                depth,
                size,
                n_instructions: 1,
                kind: flow_kind::MEMORY,
                access: row.kind(),
            };
            self.push(event, value);
        }
    }

    /// Adds the instructions of the block from `pc` up to `end`, which begin at `starts` in it, each with its accesses.
    #[inline]
    fn add_instructions(
        &mut self,
        pc: u64,
        end: u64,
        starts: &[u16],
        next: u64,
        depth: u64,
        mut accesses: &[AccessRow],
    ) {
        for (at, start) in starts.iter().enumerate() {
            let address = pc.wrapping_add(u64::from(*start));
            let behind = starts.get(at + 1).map_or(end, |start| pc.wrapping_add(u64::from(*start)));
            let target = if at + 1 == starts.len() { next } else { behind };
            self.add(flow_kind::EXEC, address, target, behind.wrapping_sub(address) as u32, 1, depth);
            if IS_ACCESSING && !accesses.is_empty() {
                let (own, rest) = accesses.split_at(accesses.iter().take_while(|row| row.pc() < behind).count());
                self.add_accesses(own, depth);
                accesses = rest;
            }
        }
    }

    /// Passes the events of the path that lie where the walk is, and tells of them. `Err`: it goes no further, or not before
    /// there are more accesses.
    #[inline]
    fn settle(
        &mut self,
        walker: &mut Walker,
        details: Details,
        begun: &mut BegunBlock,
        n_events: &mut usize,
    ) -> Result<(), Option<Stop>> {
        let left_at = if IS_ACCESSING { walker.next_pc() } else { 0 };
        let settled = walker.settle();
        let passed = *n_events..walker.next_event();
        *n_events = passed.end;
        if !passed.is_empty() {
            if IS_ACCESSING && walker.next_pc() != left_at {
                self.accesses.drop_at(left_at);
            }
            let times = details.times.get(passed.clone()).unwrap_or(&[]);
            self.time = times.iter().rfind(|time| **time != 0).copied().unwrap_or(self.time);
            self.tell(details, passed.clone(), begun, walker.stack().depth());
        }
        if let Err(stop) = settled {
            self.end_block(begun);
            if stop == Stop::End {
                self.tell(details, passed.end..passed.end + 1, begun, walker.stack().depth());
            }
            return Err(Some(stop));
        }
        // That it came here was told, and not yet that it went on.
        if !passed.is_empty() && !walker.is_known(self.question.known) {
            return Err(Some(Stop::Cut));
        }
        if IS_ACCESSING && self.accesses.are_all_passed() {
            return Err(None);
        }
        Ok(())
    }

    /// Tells of events of the path that were just passed. A signal or an end comes where the thread left a block.
    fn tell(&mut self, details: Details, passed: Range<usize>, begun: &mut BegunBlock, depth: u64) {
        for one in details.told.get(passed).unwrap_or(&[]).iter().filter(|one| one.is_told != 0) {
            if one.kind != flow_kind::SYSCALL {
                self.end_block(begun);
            }
            // That it began or ended is no part of what it does.
            let is_open = self.is_open || one.kind & 31 == flow_kind::THREAD;
            if is_open && self.question.wants(one.kind & 31) {
                self.add(one.kind, one.address, one.target, 0, 1, depth);
            }
        }
    }

    /// The block that was begun, if there is one, goes no further.
    fn end_block(&mut self, begun: &mut BegunBlock) {
        if begun.end != 0 {
            self.leave_block(begun, begun.end);
        }
    }

    /// The block that was begun is left for `next`.
    #[inline]
    fn leave_block(&mut self, begun: &mut BegunBlock, next: u64) {
        if self.question.wants(flow_kind::BLOCK) {
            let BegunBlock { address, end, n_instructions, depth } = *begun;
            let n_instructions = u16::try_from(n_instructions).unwrap_or(u16::MAX);
            self.add(flow_kind::BLOCK, address, next, end.wrapping_sub(address) as u32, n_instructions, depth);
        }
        begun.end = 0;
    }
}
