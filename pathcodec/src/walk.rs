//! Unfolding: from the streams of a path to the blocks that were executed.

use crate::code::Code;
use crate::protocol::{action, ending, Block, Event, Position, NOWHERE};
use crate::shadow::ShadowStack;
use crate::source::{Path, Stop};
use crate::source::{Place, Source, Streams};
use crate::symbols::pops_of_return;

/// A place in a path, and what it takes to go on from there. Where decisions and symbols come from is the source's business.
pub struct Walker<'a, S = Streams<'a>> {
    source: S,
    code: Code<'a>,
    events: &'a [Event],
    stack: ShadowStack<'a>,
    block: u32,
    position: Position,
    /// Decisions at which the next event comes, if none of the other numbers says that it is later.
    event_at: u64,
    next_event: usize,
    /// How many blocks were executed one by one.
    #[cfg(test)]
    pub n_steps: u64,
}

impl<'a> Walker<'a> {
    /// At the start of `path`, where `block` would run next and the open calls are those of `stack`.
    pub fn new(code: Code<'a>, path: Path<'a>, stack: ShadowStack<'a>, block: u32) -> Walker<'a> {
        Walker::with_source(Streams::new(&path), code, path.events, stack, block, path.start)
    }

    /// How many decisions go as expected before anything else may happen.
    pub fn decisions_ahead(&self) -> u64 {
        let made = self.position.decisions;
        let event_at = if self.event_at >= made { self.event_at } else { u64::MAX };
        self.source.limit().saturating_sub(made).min(event_at.saturating_sub(made + 1))
    }

    /// Whether what the thread did next is known, if all is up to so many bytes of surprises, and decisions behind the last
    /// one: it is if something that comes later is.
    #[inline]
    pub fn is_known(&self, known: (u64, u64)) -> bool {
        self.next_event < self.events.len() || (self.position.surprise_bytes, self.position.decisions) < known
    }

    /// The address of what would run next; 0 if that is not known.
    #[inline]
    pub fn next_pc(&self) -> u64 {
        self.code.block(self.block).map_or(0, |block| block.pc)
    }

    /// Where the next event is.
    pub fn event_ahead(&self) -> Option<Position> {
        self.events.get(self.next_event).map(|event| event.at)
    }

    /// Has gone on by so much, with no event on the way, and is at the same block with the same calls open.
    pub fn pass(&mut self, by: Position) {
        self.position.surprise_bytes += by.surprise_bytes;
        self.position.symbol_bytes += by.symbol_bytes;
        self.position.decisions += by.decisions;
        self.source.skip(by.surprise_bytes as usize, by.symbol_bytes as usize);
        self.find_event();
    }
}

impl<'a, S: Source> Walker<'a, S> {
    /// At `position`, where `block` would run next and the open calls are those of `stack`.
    pub fn with_source(
        source: S,
        code: Code<'a>,
        events: &'a [Event],
        stack: ShadowStack<'a>,
        block: u32,
        position: Position,
    ) -> Walker<'a, S> {
        let mut walker = Walker {
            source,
            code,
            events,
            stack,
            block,
            position,
            event_at: 0,
            next_event: 0,
            #[cfg(test)]
            n_steps: 0,
        };
        walker.find_event();
        walker
    }

    pub fn source(&self) -> &S {
        &self.source
    }

    /// Bytes read of both streams.
    #[inline]
    pub fn bytes_read(&self) -> u64 {
        self.position.surprise_bytes + self.position.symbol_bytes
    }

    /// The same place, with another source.
    pub fn map<T>(self, change: impl FnOnce(S) -> T) -> Walker<'a, T> {
        Walker {
            source: change(self.source),
            code: self.code,
            events: self.events,
            stack: self.stack,
            block: self.block,
            position: self.position,
            event_at: self.event_at,
            next_event: self.next_event,
            #[cfg(test)]
            n_steps: self.n_steps,
        }
    }

    pub fn position(&self) -> Position {
        Position { depth: self.stack.depth(), ..self.position }
    }

    /// The block that would run next.
    pub fn block(&self) -> u32 {
        self.block
    }

    pub fn stack(&self) -> &ShadowStack<'a> {
        &self.stack
    }

    pub fn code(&self) -> &Code<'a> {
        &self.code
    }

    /// The number of the next event.
    pub fn next_event(&self) -> usize {
        self.next_event
    }

    /// Executes one block and returns it.
    #[inline]
    pub fn step(&mut self) -> Result<u32, Stop> {
        self.settle()?;
        self.step_settled()
    }

    /// Executes one block and returns it; `settle` was called.
    #[inline]
    pub fn step_settled(&mut self) -> Result<u32, Stop> {
        let (index, block) = self.code.block_at(self.block).ok_or(self.stop_nowhere())?;
        let block = *block;
        self.execute(index, &block)?;
        Ok(index)
    }

    /// Executes the block that would run next, number `index`; `settle` was called.
    #[inline]
    pub fn execute(&mut self, index: u32, block: &Block) -> Result<(), Stop> {
        self.block = match block.ending {
            ending::FALL_THROUGH => block.next,
            ending::JUMP => block.target,
            ending::BACK_JUMP => {
                self.count()?;
                block.target
            }
            ending::CONDITIONAL => {
                let is_taken = self.decide(index, block)? == (block.is_taken != 0);
                if is_taken {
                    block.target
                } else {
                    block.next
                }
            }
            ending::CALL => {
                self.count()?;
                self.stack.push(block.end_pc, block.next);
                block.target
            }
            ending::INDIRECT_CALL | ending::INDIRECT_JUMP => {
                let target = match self.take_elsewhere() {
                    Some(target) => target,
                    None => self.take_symbol(index)?.1,
                };
                if block.ending == ending::INDIRECT_CALL {
                    self.stack.push(block.end_pc, block.next);
                }
                target
            }
            ending::RETURN => match self.take_elsewhere() {
                Some(target) => {
                    let address = self.code.block(target).map_or(0, |block| block.pc);
                    self.stack.return_elsewhere(address);
                    target
                }
                None if block.is_taken != 0 => {
                    let (symbol, target) = self.take_symbol(index)?;
                    self.stack.pop(pops_of_return(symbol));
                    target
                }
                None => {
                    // A thread may be killed before it tells where the return of a call that is not known leads.
                    let (_, number) = self.stack.top().ok_or_else(|| self.stop_nowhere())?;
                    self.stack.pop(1);
                    number
                }
            },
            // An address where no instruction could be read.
            ending::STOP if block.n_instructions == 0 => return Err(self.stop_nowhere()),
            ending::STOP => NOWHERE,
            _ => return Err(Stop::Damaged),
        };
        #[cfg(test)]
        {
            self.n_steps += 1;
        }
        Ok(())
    }

    /// Why there is no block: where a thread is killed nothing says what would have come.
    #[cold]
    fn stop_nowhere(&self) -> Stop {
        if self.next_event >= self.events.len() && self.source.is_used_up(self.position.decisions) {
            Stop::Cut
        } else {
            Stop::Damaged
        }
    }

    /// Makes one decision; whether it goes as expected.
    fn decide(&mut self, index: u32, block: &Block) -> Result<bool, Stop> {
        let place = Place { index, block, stack: &self.stack };
        let size = self.source.decide(place, self.position.decisions)?;
        if size == 0 {
            self.position.decisions += 1;
            return Ok(true);
        }
        self.position.surprise_bytes += size as u64;
        self.position.decisions = 0;
        self.find_event();
        Ok(false)
    }

    /// Makes a decision that has one way only.
    fn count(&mut self) -> Result<(), Stop> {
        self.source.count(self.position.decisions)?;
        self.position.decisions += 1;
        Ok(())
    }

    /// The next symbol, of block `index`, and the block that it means.
    fn take_symbol(&mut self, index: u32) -> Result<(u16, u32), Stop> {
        let block = self.code.block(index).ok_or(Stop::Damaged)?;
        let (symbol, size) = self.source.take_symbol(Place { index, block, stack: &self.stack })?;
        let target = self.code.target_of(block, symbol).ok_or(Stop::Damaged)?;
        self.position.symbol_bytes += size as u64;
        Ok((symbol, target))
    }

    /// Does what the events at this place say: `block` is what really runs next.
    #[inline]
    pub fn settle(&mut self) -> Result<(), Stop> {
        if self.position.decisions == self.event_at {
            self.do_events()?;
        }
        Ok(())
    }

    /// How many of the path's events lie where the walk is: as many at most may be passed before the next block.
    pub fn n_events_here(&self) -> usize {
        if self.position.decisions != self.event_at {
            return 0;
        }
        let ahead = self.events.get(self.next_event..).unwrap_or(&[]);
        ahead.iter().take_while(|event| event.at == self.position).count()
    }

    #[cold]
    fn do_events(&mut self) -> Result<(), Stop> {
        while self.position.decisions == self.event_at {
            let Some(event) = self.event_here() else {
                return Ok(());
            };
            match event.action {
                action::NOTE => {}
                action::RESUME => self.block = event.value,
                action::EXPECT => self.code.expect(event.subject, event.value != 0).ok_or(Stop::Damaged)?,
                action::CODE => self.code.hold(event.subject, event.value).ok_or(Stop::Damaged)?,
                action::ELSEWHERE => return Ok(()),
                action::END => return Err(Stop::End),
                _ => return Err(Stop::Damaged),
            }
            self.pass_event();
        }
        Ok(())
    }

    /// Where the block's end is to lead, if an event says that.
    #[inline]
    fn take_elsewhere(&mut self) -> Option<u32> {
        if self.position.decisions != self.event_at {
            return None;
        }
        let event = self.event_here().filter(|event| event.action == action::ELSEWHERE)?;
        self.pass_event();
        Some(event.value)
    }

    fn event_here(&self) -> Option<Event> {
        let event = self.events.get(self.next_event)?;
        // A branch that leads elsewhere moves the position: there is none before it with the same one.
        let is_here = event.block == self.block || event.action == action::ELSEWHERE;
        (is_here && event.at == self.position()).then_some(*event)
    }

    fn pass_event(&mut self) {
        self.next_event += 1;
        self.find_event();
    }

    fn find_event(&mut self) {
        self.event_at = match self.events.get(self.next_event) {
            Some(event) if event.at.surprise_bytes == self.position.surprise_bytes => event.at.decisions,
            _ => u64::MAX,
        };
    }
}
