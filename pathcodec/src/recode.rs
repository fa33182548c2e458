//! Segments of a path, re-coded to a fraction of their size: what is stored of a path that nobody writes any more.
//!
//! A segment begins somewhere in a path, and covers so many executed blocks. Its coded form holds the bytes of surprises and
//! symbols that they took, and nothing else: where it begins (block, position, open calls, what the code expects), the
//! events in it, and how many blocks it has are kept by whoever keeps segments. A predictor begins anew with each, so each
//! is read by itself.
//!
//! The coded form is one arithmetically coded number (`range_coder`). It holds a bit for each conditional branch in the
//! order of the path, and a few for each indirect branch whose target is not given by an event, each with the probability
//! that the predictor has for it (`predictor`, whose constants belong to the form). Direct jumps, calls and returns hold
//! nothing. Reading, one walks through the code as ever, asks the coded form where the streams would be asked, and writes
//! the streams on the way.
//!
//! Streams have one form for each number here, the shortest: others contradict the path, as do symbols without a target.

use crate::code::Code;
use crate::predictor::Predictor;
use crate::protocol::{Event, Position};
use crate::range_coder::{Decoder, Encoder};
use crate::shadow::ShadowStack;
use crate::source::Stop;
use crate::source::{Place, Source, Streams};
use crate::surprises::{size_of_surprise, write_surprise};
use crate::symbols::{size_of_symbol, write_symbol};
use crate::walk::Walker;

/// More than the end of a block takes: the bit of a candidate and 16 of a symbol, of 22 bits each, and the end of the number.
const LEAST_ROOM: usize = 17 * 22 / 8 + 16;

/// What was encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub n_bytes: usize,
    pub n_blocks: u64,
    /// Conditional and indirect branches.
    pub n_items: u64,
    /// Why it ends before it has as many items as it might have; `None` also if the room is used up.
    pub stop: Option<Stop>,
}

struct Encoding<'a, 'm> {
    streams: Streams<'a>,
    predictor: Predictor<'m>,
    encoder: Encoder<'m>,
    n_items: u64,
}

impl Source for Encoding<'_, '_> {
    fn decide(&mut self, place: Place, made: u64) -> Result<usize, Stop> {
        let limit = self.streams.limit();
        let size = self.streams.decide(place, made)?;
        if size != 0 && (made != limit || size != size_of_surprise(made + 1)) {
            return Err(Stop::Damaged);
        }
        self.predictor.decide(&mut self.encoder, place, size != 0);
        self.n_items += 1;
        Ok(size)
    }

    fn is_used_up(&self, made: u64) -> bool {
        self.streams.is_used_up(made)
    }

    fn count(&mut self, made: u64) -> Result<(), Stop> {
        self.streams.count(made)
    }

    fn take_symbol(&mut self, place: Place) -> Result<(u16, usize), Stop> {
        let (symbol, size) = self.streams.take_symbol(place)?;
        if u32::from(symbol) >= place.block.n_targets || size != size_of_symbol(symbol) {
            return Err(Stop::Damaged);
        }
        self.predictor.choose(&mut self.encoder, place, symbol);
        self.n_items += 1;
        Ok((symbol, size))
    }
}

/// Walks on through `n_items` conditional and indirect branches, or until there is no next block, and writes them to `room`.
/// The segment ends early when the room is nearly used up. Gives the walk back, at the segment's end, where the next one
/// may begin.
///
/// `words` are the predictor's memory. No segment: they are fewer than `MEMORY_WORDS`, or there is no room for anything.
pub fn encode<'a>(
    walker: Walker<'a>,
    n_items: u64,
    words: &mut [u32],
    room: &mut [u8],
) -> (Walker<'a>, Option<Segment>) {
    let Some(predictor) = Predictor::new(words).filter(|_| room.len() >= LEAST_ROOM) else {
        return (walker, None);
    };
    let encoder = Encoder::new(room);
    let (mut n_blocks, mut stop) = (0, None);
    let mut walker = walker.map(|streams| Encoding { streams, predictor, encoder, n_items: 0 });
    while walker.source().n_items < n_items && walker.source().encoder.room() >= LEAST_ROOM {
        match walker.step() {
            Ok(_) => n_blocks += 1,
            Err(reason) => {
                stop = Some(reason);
                break;
            }
        }
    }
    let mut finished = (None, 0);
    let walker = walker.map(|encoding| {
        finished = (encoding.encoder.finish(), encoding.n_items);
        encoding.streams
    });
    let (n_bytes, n_items) = finished;
    (walker, n_bytes.map(|n_bytes| Segment { n_bytes, n_blocks, n_items, stop }))
}

struct Decoding<'m> {
    predictor: Predictor<'m>,
    decoder: Decoder<'m>,
    surprises: &'m mut [u8],
    symbols: &'m mut [u8],
    surprise_bytes: usize,
    symbol_bytes: usize,
}

impl Source for Decoding<'_> {
    fn decide(&mut self, place: Place, made: u64) -> Result<usize, Stop> {
        self.count(made)?;
        if !self.predictor.decide(&mut self.decoder, place, false) {
            return Ok(0);
        }
        let room = self.surprises.get_mut(self.surprise_bytes..).unwrap_or(&mut []);
        let size = write_surprise(room, made + 1).ok_or(Stop::Damaged)?;
        self.surprise_bytes += size;
        Ok(size)
    }

    fn is_used_up(&self, _: u64) -> bool {
        // The segment's length says where it ends.
        false
    }

    fn count(&mut self, made: u64) -> Result<(), Stop> {
        // One more can be counted, whatever the start was.
        made.checked_add(1).map(|_| ()).ok_or(Stop::Damaged)
    }

    fn take_symbol(&mut self, place: Place) -> Result<(u16, usize), Stop> {
        let symbol = self.predictor.choose(&mut self.decoder, place, 0);
        let room = self.symbols.get_mut(self.symbol_bytes..).unwrap_or(&mut []);
        let size = write_symbol(room, symbol).ok_or(Stop::Damaged)?;
        self.symbol_bytes += size;
        Ok((symbol, size))
    }
}

/// Where a segment begins.
pub struct Start<'a> {
    pub code: Code<'a>,
    /// From the first one that is not behind it.
    pub events: &'a [Event],
    pub stack: ShadowStack<'a>,
    pub block: u32,
    pub position: Position,
}

/// What a segment is read from and into.
pub struct Reading<'m> {
    pub coded: &'m [u8],
    /// The predictor's memory.
    pub words: &'m mut [u32],
    /// Room for the streams: just as much as they have, or more.
    pub surprises: &'m mut [u8],
    pub symbols: &'m mut [u8],
}

/// Writes the streams of a segment of `n_blocks` blocks, and returns the position behind it. Less the one where it begins,
/// that is how many bytes there are; and the decisions behind the last surprise are in it.
///
/// What was not encoded from this start does not fit, or reads as something else; it takes no more than `n_blocks` steps.
pub fn decode(start: Start, n_blocks: u64, reading: Reading) -> Result<Position, Stop> {
    let Reading { coded, words, surprises, symbols } = reading;
    let source = Decoding {
        predictor: Predictor::new(words).ok_or(Stop::Damaged)?,
        decoder: Decoder::new(coded),
        surprises,
        symbols,
        surprise_bytes: 0,
        symbol_bytes: 0,
    };
    let mut walker = Walker::with_source(source, start.code, start.events, start.stack, start.block, start.position);
    for _ in 0..n_blocks {
        walker.step()?;
    }
    Ok(walker.position())
}
