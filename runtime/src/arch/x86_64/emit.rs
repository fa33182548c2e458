//! Machine code, byte by byte, into the hot and the cold section of a unit.
//!
//! Pure: writes into a buffer, knows the address the buffer will run at.

use super::forwarding::is_absolute;

/// A piece of memory that code is written to.
struct Section<'a> {
    buffer: &'a mut [u8],
    /// Address of the buffer's first byte when it runs.
    base: u64,
    position: usize,
}

impl Section<'_> {
    fn address(&self) -> u64 {
        self.base + self.position as u64
    }
}

/// Where the code goes: a hot section, which runs straight on, and a cold one for what runs seldom. Writing past the end
/// is remembered, not done: `overflowed`. Places to be bound later are addresses.
pub struct Emitter<'a> {
    /// The section written to now, then the other one.
    sections: [Section<'a>; 2],
    is_cold: bool,
    overflowed: bool,
    /// Operands in the thread's private block are `gs:[x]`, not `gs:[eip + x]`.
    is_absolute: bool,
}

impl<'a> Emitter<'a> {
    /// Writes to `hot`, which runs at `hot_base`, and to `cold`, which runs at `cold_base`.
    pub fn new(hot: &'a mut [u8], hot_base: u64, cold: &'a mut [u8], cold_base: u64) -> Emitter<'a> {
        let hot = Section { buffer: hot, base: hot_base, position: 0 };
        let cold = Section { buffer: cold, base: cold_base, position: 0 };
        Emitter { sections: [hot, cold], is_cold: false, overflowed: false, is_absolute: is_absolute() }
    }

    pub(super) fn is_absolute(&self) -> bool {
        self.is_absolute
    }

    /// As on a processor that is fast with the one form of operand, or with the other one.
    #[cfg(test)]
    pub fn set_absolute(&mut self, is_absolute: bool) {
        self.is_absolute = is_absolute;
    }

    fn section(&self) -> &Section<'a> {
        &self.sections[usize::from(self.is_cold)]
    }

    /// Writes what follows to the cold section (or back to the hot one).
    pub fn set_cold(&mut self, is_cold: bool) {
        self.is_cold = is_cold;
    }

    /// Bytes written to the hot section.
    pub fn position(&self) -> usize {
        self.sections[0].position
    }

    /// Bytes written to the cold section.
    pub fn cold_position(&self) -> usize {
        self.sections[1].position
    }

    /// Where the next byte runs.
    pub fn address(&self) -> u64 {
        self.section().address()
    }

    pub fn overflowed(&self) -> bool {
        self.overflowed
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        let section = &mut self.sections[usize::from(self.is_cold)];
        let end = section.position + bytes.len();
        if end > section.buffer.len() {
            self.overflowed = true;
            return;
        }
        section.buffer[section.position..end].copy_from_slice(bytes);
        section.position = end;
    }

    pub fn dword(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn qword(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Writes again over what was written at `address`.
    pub fn patch(&mut self, address: u64, bytes: &[u8]) {
        for section in &mut self.sections {
            let start = address.wrapping_sub(section.base) as usize;
            if start < section.position {
                if let Some(target) = section.buffer.get_mut(start..start + bytes.len()) {
                    target.copy_from_slice(bytes);
                }
                return;
            }
        }
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
        let misaligned = (self.address() + ahead) % alignment;
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
        let misaligned = (self.address() + ahead) % alignment;
        if misaligned != 0 {
            let padding = (alignment - misaligned) as usize;
            let n = padding.min(PREFIXES.len());
            self.nops(padding - n);
            self.bytes(&PREFIXES[..n]);
        }
    }

    /// Makes the rel32 at `place` lead here.
    pub fn bind(&mut self, place: u64) {
        let displacement = self.address().wrapping_sub(place + 4) as i32;
        self.patch(place, &displacement.to_le_bytes());
    }

    /// Makes the rel8 at `place` lead here; `false` if it is too far.
    pub fn bind_short(&mut self, place: u64) -> bool {
        self.bind_short_to(place, self.address())
    }

    /// Makes the rel8 at `place` lead to `target`; `false` if it is too far.
    pub fn bind_short_to(&mut self, place: u64, target: u64) -> bool {
        let displacement = target.wrapping_sub(place + 1) as i64;
        let fits = (-128..128).contains(&displacement);
        self.patch(place, &[displacement as u8]);
        fits
    }

    /// An 8-aligned constant in the cold section; `place` is the rip-relative displacement that reads it.
    pub fn literal(&mut self, place: u64, value: u64) {
        let was_cold = core::mem::replace(&mut self.is_cold, true);
        while !self.address().is_multiple_of(8) && !self.overflowed {
            self.bytes(&[0xcc]);
        }
        self.bind(place);
        self.qword(value);
        self.is_cold = was_cold;
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
