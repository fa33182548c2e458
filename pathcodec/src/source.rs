//! Where a walk's decisions and symbols come from: the streams of a path, or whatever stands for them.

use crate::protocol::{Block, Event, Position};
use crate::shadow::ShadowStack;
use crate::surprises::read_surprise;
use crate::symbols::read_symbol;

/// Why there is no next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The path ends here.
    End,
    /// What was written of the path is used up: the thread was killed, or more is still to come.
    Cut,
    /// The path and the code do not fit together.
    Damaged,
}

/// What was recorded of one thread, or a stretch of it.
#[derive(Clone, Copy)]
pub struct Path<'a> {
    /// Where the streams here begin, but for the depth.
    pub start: Position,
    pub surprises: &'a [u8],
    pub symbols: &'a [u8],
    pub events: &'a [Event],
    /// Decisions behind the last surprise.
    pub decisions: u64,
}

/// The branch that is asked about: at the end of block number `index`.
#[derive(Clone, Copy)]
pub struct Place<'b, 'a> {
    pub index: u32,
    pub block: &'b Block,
    /// Open calls.
    pub stack: &'b ShadowStack<'a>,
}

/// Answers a walker's questions, in the order of the path.
pub trait Source {
    /// How many bytes of surprises the conditional branch at `place` takes: 0 if it goes as expected. `made` decisions were
    /// made since the last surprise.
    fn decide(&mut self, place: Place, made: u64) -> Result<usize, Stop>;

    /// Whether the path goes on through a decision that has one way only.
    fn count(&mut self, made: u64) -> Result<(), Stop>;

    /// Whether nothing is left of the path, of whose decisions `made` were made since the last surprise.
    fn is_used_up(&self, made: u64) -> bool;

    /// The symbol of the indirect branch at `place`, and how many bytes it takes.
    fn take_symbol(&mut self, place: Place) -> Result<(u16, usize), Stop>;
}

/// The streams as they were recorded.
pub struct Streams<'a> {
    /// What is not read yet.
    surprises: &'a [u8],
    symbols: &'a [u8],
    /// Decisions that may be made before the next one is a surprise, or unknown.
    limit: u64,
    /// Decisions behind the last surprise.
    decisions: u64,
}

impl<'a> Streams<'a> {
    pub fn new(path: &Path<'a>) -> Streams<'a> {
        let (surprises, symbols, decisions) = (path.surprises, path.symbols, path.decisions);
        let mut streams = Streams { surprises, symbols, limit: 0, decisions };
        streams.find_limit();
        streams
    }

    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// What is not read yet, of surprises and of symbols.
    pub fn rest(&self) -> [&'a [u8]; 2] {
        [self.surprises, self.symbols]
    }

    /// Takes so many bytes for read.
    pub fn skip(&mut self, surprise_bytes: usize, symbol_bytes: usize) {
        self.surprises = self.surprises.get(surprise_bytes..).unwrap_or(&[]);
        self.symbols = self.symbols.get(symbol_bytes..).unwrap_or(&[]);
        self.find_limit();
    }

    fn find_limit(&mut self) {
        self.limit = match read_surprise(self.surprises) {
            Some((decisions, _)) => decisions - 1,
            None => self.decisions,
        };
    }
}

impl Source for Streams<'_> {
    #[inline]
    fn decide(&mut self, _: Place, made: u64) -> Result<usize, Stop> {
        if made < self.limit {
            return Ok(0);
        }
        let stop = if self.surprises.is_empty() { Stop::Cut } else { Stop::Damaged };
        let (_, size) = read_surprise(self.surprises).ok_or(stop)?;
        self.surprises = self.surprises.get(size..).unwrap_or(&[]);
        self.find_limit();
        Ok(size)
    }

    #[inline]
    fn count(&mut self, made: u64) -> Result<(), Stop> {
        if made < self.limit {
            return Ok(());
        }
        // A surprise here contradicts the code.
        Err(if self.surprises.is_empty() { Stop::Cut } else { Stop::Damaged })
    }

    fn is_used_up(&self, made: u64) -> bool {
        self.surprises.is_empty() && self.symbols.is_empty() && made >= self.limit
    }

    #[inline]
    fn take_symbol(&mut self, _: Place) -> Result<(u16, usize), Stop> {
        let (symbol, size) = read_symbol(self.symbols).ok_or(Stop::Cut)?;
        self.symbols = self.symbols.get(size..).unwrap_or(&[]);
        Ok((symbol, size))
    }
}
