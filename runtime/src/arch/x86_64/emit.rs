//! Machine code, byte by byte.

use super::forwarding::is_absolute;
use crate::arch::sections::Sections;
use crate::context::addresses::CachePc;
use core::ops::{Deref, DerefMut};

/// Bytes of a word in which a branch can be linked, and of a conditional branch.
pub const WORD_BYTES: u64 = 8;
pub const BRANCH_BYTES: u64 = 6;
/// Condition code of `jz`.
pub const ZERO: u8 = 4;

/// Writes instructions into sections.
pub struct Emitter<'a> {
    sections: Sections<'a>,
    /// Operands in the thread's private block are `gs:[x]`, not `gs:[eip + x]`.
    is_absolute: bool,
}

impl<'a> Deref for Emitter<'a> {
    type Target = Sections<'a>;

    fn deref(&self) -> &Sections<'a> {
        &self.sections
    }
}

impl DerefMut for Emitter<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.sections
    }
}

impl<'a> Emitter<'a> {
    /// Writes to `hot`, which runs at `hot_base`, and to `cold`, which runs at `cold_base`.
    pub fn new(hot: &'a mut [u8], hot_base: u64, cold: &'a mut [u8], cold_base: u64) -> Emitter<'a> {
        Emitter { sections: Sections::new(hot, hot_base, cold, cold_base), is_absolute: is_absolute() }
    }

    pub(super) fn is_absolute(&self) -> bool {
        self.is_absolute
    }

    /// As on a processor that is fast with the one form of operand, or with the other one.
    #[cfg(test)]
    pub fn set_absolute(&mut self, is_absolute: bool) {
        self.is_absolute = is_absolute;
    }

    /// Counts down to how hot a fragment is found to be; the condition `ZERO` holds when it is. Changes flags.
    pub fn count_heat(&mut self, displacement: u32) {
        self.increment_gs16(displacement);
    }

    /// Has the linkable jump with its displacement at `patch` lead straight on until it is linked.
    pub fn skip_jump(&mut self, patch: CachePc) {
        self.patch(patch - 1, &[0x0f, 0x1f, 0x44, 0x00, 0x00]);
    }

    /// A single-byte-or-longer no-op of `size` bytes.
    pub fn nops(&mut self, size: usize) {
        // Recommended multi-byte sequences: Intel SDM volume 2, NOP.
        const NOPS: [&[u8]; 9] = [
            &[0x90],
            &[0x66, 0x90],
            &[0x0f, 0x1f, 0x00],
            &[0x0f, 0x1f, 0x40, 0x00],
            &[0x0f, 0x1f, 0x44, 0x00, 0x00],
            &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
            &[0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00],
            &[0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
            &[0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
        ];
        let mut rest = size;
        while rest > 0 {
            let step = rest.min(9);
            self.bytes(NOPS[step - 1]);
            rest -= step;
        }
    }

    /// No-ops until `address() + ahead` is a multiple of `alignment`.
    pub fn align(&mut self, alignment: u64, ahead: u64) {
        let misaligned = (self.address().raw() + ahead) % alignment;
        if misaligned != 0 {
            self.nops((alignment - misaligned) as usize);
        }
    }

    /// As `align`, in front of a near jump or call that shares its aligned word with nothing else, or of the no-op that may come in its
    /// place: what it can hold as prefixes that mean nothing to either (CS, Intel SDM volume 2, 2.1.1) takes no instruction of its own.
    pub fn align_by_prefixes(&mut self, alignment: u64, ahead: u64) {
        const CS: u8 = 0x2e;
        // More than three prefixes are slow to decode on some processors.
        const PREFIXES: &[u8] = &[CS; 3];
        let misaligned = (self.address().raw() + ahead) % alignment;
        if misaligned != 0 {
            let padding = (alignment - misaligned) as usize;
            let n = padding.min(PREFIXES.len());
            self.nops(padding - n);
            self.bytes(&PREFIXES[..n]);
        }
    }

    /// Makes the rel32 at `place` lead here.
    pub fn bind(&mut self, place: CachePc) {
        let displacement = (place + 4).distance_to(self.address()) as i32;
        self.patch(place, &displacement.to_le_bytes());
    }

    /// Makes the rel8 at `place` lead here; `false` if it is too far.
    pub fn bind_short(&mut self, place: CachePc) -> bool {
        self.bind_short_to(place, self.address())
    }

    /// Makes the rel8 at `place` lead to `target`; `false` if it is too far.
    pub fn bind_short_to(&mut self, place: CachePc, target: CachePc) -> bool {
        let displacement = (place + 1).distance_to(target);
        let fits = (-128..128).contains(&displacement);
        self.patch(place, &[displacement as u8]);
        fits
    }

    /// An 8-aligned constant in the cold section; `place` is the rip-relative displacement that reads it.
    pub fn literal(&mut self, place: CachePc, value: u64) {
        let was_cold = self.set_cold(true);
        while !self.address().raw().is_multiple_of(8) && !self.overflowed() {
            self.bytes(&[0xcc]);
        }
        self.bind(place);
        self.qword(value);
        self.set_cold(was_cold);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    #[test]
    fn branches_reach_the_cold_section_and_back() {
        let (mut hot, mut cold) = ([0u8; 64], [0u8; 64]);
        let mut emitter = Emitter::new(&mut hot, 0x1000, &mut cold, 0x9000);
        let away = emitter.jump();
        emitter.set_cold(true);
        emitter.nops(3);
        emitter.bind(away);
        let back = emitter.jump();
        emitter.set_cold(false);
        emitter.bind(back);
        let decode =
            |code: &[u8], ip| Decoder::with_ip(64, code, ip, DecoderOptions::NONE).decode().near_branch_target();
        assert_eq!(decode(&hot, 0x1000), 0x9003);
        assert_eq!(decode(&cold[3..], 0x9003), 0x1005);
    }

    #[test]
    fn overflow_is_remembered() {
        let mut buffer = [0u8; 4];
        let mut emitter = Emitter::new(&mut buffer, 0, &mut [], 1);
        emitter.qword(1);
        assert!(emitter.overflowed());
        assert_eq!(emitter.position(), 0);
    }
}
