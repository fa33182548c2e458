//! Folding: from the blocks that were executed to the streams of a path. The runtime's translated code writes the same
//! streams; this is what tests compare with, and what re-codes a path.

use crate::code::Code;
use crate::protocol::{action, ending, Event, Position, NOWHERE};
use crate::shadow::ShadowStack;
use crate::surprises::write_surprise;
use crate::symbols::{pops_of_return, write_symbol};

/// Where the streams go.
pub struct Room<'a> {
    pub surprises: &'a mut [u8],
    pub symbols: &'a mut [u8],
    pub events: &'a mut [Event],
}

/// Takes blocks one by one. Every method returns `None` when there is no room.
pub struct Folder<'a> {
    code: Code<'a>,
    room: Room<'a>,
    stack: ShadowStack<'a>,
    position: Position,
    n_events: usize,
    /// The block that was executed last; how it was left comes with the next one.
    last: Option<u32>,
    /// The block that comes next if nothing else is said.
    implied: u32,
}

/// How much of the room is used, and the decisions behind the last surprise.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    pub surprise_bytes: usize,
    pub symbol_bytes: usize,
    pub events: usize,
    pub decisions: u64,
}

impl<'a> Folder<'a> {
    /// `start` is the block that a reader would expect first.
    pub fn new(code: Code<'a>, room: Room<'a>, stack: ShadowStack<'a>, start: u32) -> Folder<'a> {
        let position = Position::default();
        Folder { code, room, stack, position, n_events: 0, last: None, implied: start }
    }

    /// The next block that was executed.
    pub fn push(&mut self, block: u32) -> Option<()> {
        self.leave_last(Some(block))?;
        if self.implied != block {
            self.write_event(action::RESUME, self.implied, block)?;
        }
        self.last = Some(block);
        Some(())
    }

    /// From here on the branch at the end of `subject` is expected to be taken, or not.
    pub fn expect(&mut self, next: u32, subject: u32, is_taken: bool) -> Option<()> {
        self.leave_last(Some(next))?;
        self.last = None;
        let (at, n) = (Position { depth: self.stack.depth(), ..self.position }, self.n_events);
        let event = self.room.events.get_mut(n)?;
        let (value, action) = (u32::from(is_taken), action::EXPECT);
        *event = Event { at, block: self.implied, subject, value, action, reserved: [0; 3] };
        self.n_events += 1;
        self.code.expect(subject, is_taken)
    }

    /// The path ends here.
    pub fn end(&mut self) -> Option<Used> {
        self.leave_last(None)?;
        self.last = None;
        self.write_event(action::END, self.implied, NOWHERE)?;
        Some(Used {
            surprise_bytes: self.position.surprise_bytes as usize,
            symbol_bytes: self.position.symbol_bytes as usize,
            events: self.n_events,
            decisions: self.position.decisions,
        })
    }

    /// Writes how the last block was left, to `next` if that is possible.
    fn leave_last(&mut self, next: Option<u32>) -> Option<()> {
        let Some(last) = self.last.take() else {
            return Some(());
        };
        let block = *self.code.block(last)?;
        self.implied = match block.ending {
            ending::FALL_THROUGH => block.next,
            ending::JUMP => block.target,
            ending::BACK_JUMP => {
                self.position.decisions += 1;
                block.target
            }
            ending::CONDITIONAL => self.decide(next, block.is_taken != 0, block.target, block.next)?,
            ending::CALL => {
                self.position.decisions += 1;
                self.stack.push(block.end_pc, block.next);
                block.target
            }
            ending::INDIRECT_CALL | ending::INDIRECT_JUMP => {
                let target = self.branch(last, next)?;
                if block.ending == ending::INDIRECT_CALL {
                    self.stack.push(block.end_pc, block.next);
                }
                target
            }
            ending::RETURN => self.come_back(last, next)?,
            _ => NOWHERE,
        };
        Some(())
    }

    fn decide(&mut self, next: Option<u32>, is_taken: bool, target: u32, behind: u32) -> Option<u32> {
        let (expected, other) = if is_taken { (target, behind) } else { (behind, target) };
        self.position.decisions += 1;
        if next != Some(other) || other == expected {
            return Some(expected);
        }
        let room = &mut self.room.surprises[self.position.surprise_bytes as usize..];
        self.position.surprise_bytes += write_surprise(room, self.position.decisions)? as u64;
        self.position.decisions = 0;
        Some(other)
    }

    fn branch(&mut self, last: u32, next: Option<u32>) -> Option<u32> {
        if self.write_symbol(last, next)?.is_none() {
            let target = next.unwrap_or(NOWHERE);
            self.write_event(action::ELSEWHERE, last, target)?;
            return Some(target);
        }
        next
    }

    /// Writes the symbol that stands for `next` at the end of block `last`, and returns it, if one does.
    fn write_symbol(&mut self, last: u32, next: Option<u32>) -> Option<Option<u16>> {
        let block = *self.code.block(last)?;
        let symbol = next.and_then(|next| {
            let n_symbols = block.n_targets.min(u32::from(u16::MAX)) as u16;
            (0..n_symbols).find(|symbol| self.code.target_of(&block, *symbol) == Some(next))
        });
        if let Some(symbol) = symbol {
            let room = self.room.symbols.get_mut(self.position.symbol_bytes as usize..)?;
            self.position.symbol_bytes += write_symbol(room, symbol)? as u64;
        }
        Some(symbol)
    }

    fn come_back(&mut self, last: u32, next: Option<u32>) -> Option<u32> {
        if self.code.block(last)?.is_taken != 0 {
            if let Some(symbol) = self.write_symbol(last, next)? {
                self.stack.pop(pops_of_return(symbol));
                return next;
            }
        } else if let Some((_, number)) = self.stack.top().filter(|(_, number)| next.is_none_or(|next| next == *number))
        {
            self.stack.pop(1);
            return Some(number);
        }
        let target = next.unwrap_or(NOWHERE);
        self.write_event(action::ELSEWHERE, last, target)?;
        let address = self.code.block(target).map_or(0, |block| block.pc);
        self.stack.return_elsewhere(address);
        Some(target)
    }

    fn write_event(&mut self, action: u8, block: u32, value: u32) -> Option<()> {
        let at = Position { depth: self.stack.depth(), ..self.position };
        let event = self.room.events.get_mut(self.n_events)?;
        *event = Event { at, block, subject: block, value, action, reserved: [0; 3] };
        self.n_events += 1;
        Some(())
    }
}
