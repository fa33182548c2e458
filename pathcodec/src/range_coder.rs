//! Binary arithmetic coding: bits, each with a probability, to bytes and back.
//!
//! The coded form is a number below 1, its bytes the most significant first, that lies in the interval which the bits narrow
//! down. Bytes behind its end are zeros, and zeros at its end are not stored. A narrowing keeps at least 32 bits of the interval's
//! size, so an unlikely bit is always possible, and what a likely one costs is exact to about 2^-10 of itself.

/// Probabilities are multiples of 2^-22, and neither 0 nor 1.
pub const PROBABILITY_BITS: u32 = 22;
const CERTAIN: u32 = 1 << PROBABILITY_BITS;

/// Either side of the coder, so that a model is written once.
pub trait BitCoder {
    /// Codes a bit that is 1 with this probability. An encoder is told the bit; a decoder finds and returns it.
    fn code(&mut self, bit: bool, probability: u32) -> bool;
}

fn part_of(range: u64, probability: u32) -> u64 {
    (range >> PROBABILITY_BITS) * u64::from(probability.clamp(1, CERTAIN - 1))
}

/// Writes to memory of the caller.
pub struct Encoder<'a> {
    room: &'a mut [u8],
    used: usize,
    low: u64,
    /// Size of the interval, less one at the start.
    range: u64,
    /// Whether there was no room for something: what was coded is lost.
    is_full: bool,
}

impl<'a> Encoder<'a> {
    pub fn new(room: &'a mut [u8]) -> Encoder<'a> {
        Encoder { room, used: 0, low: 0, range: u64::MAX, is_full: false }
    }

    /// How many bytes there is room for yet.
    pub fn room(&self) -> usize {
        self.room.len() - self.used
    }

    /// Writes what is left, and returns how many bytes there are. `None`: there was no room.
    pub fn finish(mut self) -> Option<usize> {
        if self.is_full {
            return None;
        }
        // The number of the interval with the most zeros at its end.
        let (highest, mut mask) = (self.low.wrapping_add(self.range - 1), u64::MAX);
        let mut number = highest & !mask;
        while number.wrapping_sub(self.low) >= self.range {
            mask >>= 8;
            number = highest & !mask;
        }
        if number < self.low {
            self.carry();
        }
        for byte in number.to_be_bytes() {
            self.write(&[byte]);
            if self.is_full && byte != 0 {
                return None;
            }
        }
        while self.used > 0 && self.room.get(self.used - 1) == Some(&0) {
            self.used -= 1;
        }
        Some(self.used)
    }

    fn write(&mut self, bytes: &[u8]) {
        match self.room.get_mut(self.used..self.used + bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.used += bytes.len();
            }
            None => self.is_full = true,
        }
    }

    /// Adds one to the number that is written.
    #[cold]
    fn carry(&mut self) {
        for byte in self.room.iter_mut().take(self.used).rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
    }
}

impl BitCoder for Encoder<'_> {
    #[inline]
    fn code(&mut self, bit: bool, probability: u32) -> bool {
        let part = part_of(self.range, probability);
        if bit {
            self.range = part;
        } else {
            let (low, is_over) = self.low.overflowing_add(part);
            self.low = low;
            self.range -= part;
            if is_over {
                self.carry();
            }
        }
        if self.range >> 32 == 0 {
            let bytes = ((self.low >> 32) as u32).to_be_bytes();
            self.write(&bytes);
            self.low <<= 32;
            self.range <<= 32;
        }
        bit
    }
}

/// Reads what an encoder wrote. Of anything else it makes some bits.
pub struct Decoder<'a> {
    bytes: &'a [u8],
    /// How far the coded number lies above the interval's low end.
    offset: u64,
    range: u64,
}

impl<'a> Decoder<'a> {
    pub fn new(bytes: &'a [u8]) -> Decoder<'a> {
        let mut decoder = Decoder { bytes, offset: 0, range: u64::MAX };
        decoder.offset = u64::from(decoder.read()) << 32;
        decoder.offset |= u64::from(decoder.read());
        decoder
    }

    fn read(&mut self) -> u32 {
        let mut word = [0; 4];
        let n = self.bytes.len().min(4);
        let (now, later) = self.bytes.split_at(n);
        word[..n].copy_from_slice(now);
        self.bytes = later;
        u32::from_be_bytes(word)
    }
}

impl BitCoder for Decoder<'_> {
    #[inline]
    fn code(&mut self, _: bool, probability: u32) -> bool {
        let part = part_of(self.range, probability);
        let bit = self.offset < part;
        if bit {
            self.range = part;
        } else {
            self.offset -= part;
            self.range -= part;
        }
        if self.range >> 32 == 0 {
            self.offset = self.offset << 32 | u64::from(self.read());
            self.range <<= 32;
        }
        bit
    }
}
