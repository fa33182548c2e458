//! How to come from a function's frame to its caller's, packed into a word: of code of x86-64, as far as that is ordinary.
//!
//! A rule says what the frame's address is (CFA: the stack pointer as it was in front of the call), where the caller's frame pointer lies,
//! and that the return address lies right below the frame's address. What can't be said so is `Ask`.

/// What a rule is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Nothing is known of that code.
    Nothing = 0,
    /// The frame is the stack pointer and an offset.
    Stack = 1,
    /// It is the frame pointer and an offset.
    Frame = 2,
    /// It lies in memory, at the frame pointer and an offset.
    Stored = 3,
    /// It is the stack pointer and 8, or 16 from so many bytes in 16 of code on: of a stub of a linkage table (PLT).
    Stub = 4,
    /// What a handler of a signal returns to: the stack pointer leads to what the kernel has kept.
    Signal = 5,
    /// There is no caller.
    Outermost = 6,
    /// The rule is another one.
    Ask = 7,
}

/// Where the caller's frame pointer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Saved {
    /// It has not changed.
    Same,
    /// Nobody knows, here.
    Lost,
    /// So many words below the frame.
    Below(u8),
    /// Where the frame pointer leads.
    There,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule(pub u32);

const KINDS: [Kind; 8] =
    [Kind::Nothing, Kind::Stack, Kind::Frame, Kind::Stored, Kind::Stub, Kind::Signal, Kind::Outermost, Kind::Ask];
const KIND_BITS: u32 = 4;
const SAVED_BITS: u32 = 8;
const OFFSET_AT: u32 = KIND_BITS + SAVED_BITS;
const THERE: u32 = 255;
/// The first word below the frame is the return address.
const FIRST_BELOW: i64 = 2;
const WORD_BYTES: i64 = 8;

impl Rule {
    pub const NOTHING: Rule = Rule(Kind::Nothing as u32);
    pub const OUTERMOST: Rule = Rule(Kind::Outermost as u32);
    pub const SIGNAL: Rule = Rule(Kind::Signal as u32);
    pub const ASK: Rule = Rule(Kind::Ask as u32);

    /// A rule; `ASK` where it does not fit. `offset` is in bytes; of a stub it is where in its code the frame grows.
    pub fn new(kind: Kind, offset: i64, saved: Saved) -> Rule {
        let unit = if kind == Kind::Stub { 1 } else { WORD_BYTES };
        let scaled = offset / unit;
        let limit = 1i64 << (31 - OFFSET_AT);
        if offset % unit != 0 || scaled < -limit || scaled >= limit {
            return Rule::ASK;
        }
        let saved = match saved {
            Saved::Same => 0,
            Saved::Lost => 1,
            Saved::Below(words) => u32::from(words),
            Saved::There => THERE,
        };
        Rule(kind as u32 | saved << KIND_BITS | (scaled as u32) << OFFSET_AT)
    }

    /// Where a register lies that is so many bytes from the frame.
    pub fn saved_at(offset: i64) -> Saved {
        let words = -offset / WORD_BYTES;
        let fits = offset % WORD_BYTES == 0 && (FIRST_BELOW..i64::from(THERE)).contains(&words);
        if fits {
            Saved::Below(words as u8)
        } else {
            Saved::Lost
        }
    }

    #[inline]
    pub fn kind(self) -> Kind {
        KINDS[(self.0 & 7) as usize]
    }

    #[inline]
    pub fn saved(self) -> Saved {
        match self.0 >> KIND_BITS & 0xff {
            0 => Saved::Same,
            1 => Saved::Lost,
            THERE => Saved::There,
            words => Saved::Below(words as u8),
        }
    }

    /// In bytes, but of stubs.
    #[inline]
    pub fn offset(self) -> i64 {
        let scaled = i64::from(self.0.cast_signed() >> OFFSET_AT);
        if self.kind() == Kind::Stub {
            scaled
        } else {
            scaled * WORD_BYTES
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_read_as_it_was_packed() {
        for kind in [Kind::Stack, Kind::Frame, Kind::Stored] {
            for offset in [8, 16, -8, 0, 8 * ((1 << 19) - 1), -8 * (1 << 19)] {
                for saved in [Saved::Same, Saved::Lost, Saved::There, Saved::Below(2), Saved::Below(254)] {
                    let rule = Rule::new(kind, offset, saved);
                    assert_eq!((rule.kind(), rule.offset(), rule.saved()), (kind, offset, saved));
                }
            }
        }
        let stub = Rule::new(Kind::Stub, 11, Saved::Same);
        assert_eq!((stub.kind(), stub.offset()), (Kind::Stub, 11));
        for rule in [Rule::NOTHING, Rule::OUTERMOST, Rule::SIGNAL, Rule::ASK] {
            assert_eq!((rule.offset(), rule.saved()), (0, Saved::Same));
        }
    }

    #[test]
    fn what_does_not_fit_is_asked() {
        for offset in [4, 8 << 19, -(8 << 19) - 8, i64::MAX, i64::MIN] {
            assert_eq!(Rule::new(Kind::Stack, offset, Saved::Same), Rule::ASK);
        }
        assert_eq!([-16, -8, 0, 8, -12, -2032, -2040].map(Rule::saved_at), {
            use Saved::{Below, Lost};
            [Below(2), Lost, Lost, Lost, Lost, Below(254), Lost]
        });
    }
}
