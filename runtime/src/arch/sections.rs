//! Code under construction: bytes in the hot and the cold section of a unit, on all processors.
//!
//! Pure: writes into a buffer, knows the address the buffer will run at.

use crate::context::addresses::CachePc;

/// A piece of memory that code is written to.
struct Section<'a> {
    buffer: &'a mut [u8],
    /// Address of the buffer's first byte when it runs.
    base: CachePc,
    position: usize,
}

impl Section<'_> {
    fn address(&self) -> CachePc {
        self.base + self.position as u64
    }
}

/// Where the code goes: a hot section, which runs straight on, and a cold one for what runs seldom. Writing past the end
/// is remembered, not done: `overflowed`. Places to be bound later are addresses.
pub struct Sections<'a> {
    /// The hot one, then the cold one.
    sections: [Section<'a>; 2],
    is_cold: bool,
    overflowed: bool,
}

impl<'a> Sections<'a> {
    /// Writes to `hot`, which runs at `hot_base`, and to `cold`, which runs at `cold_base`.
    pub fn new(hot: &'a mut [u8], hot_base: u64, cold: &'a mut [u8], cold_base: u64) -> Sections<'a> {
        let hot = Section { buffer: hot, base: CachePc::from_raw(hot_base), position: 0 };
        let cold = Section { buffer: cold, base: CachePc::from_raw(cold_base), position: 0 };
        Sections { sections: [hot, cold], is_cold: false, overflowed: false }
    }

    fn section(&self) -> &Section<'a> {
        &self.sections[usize::from(self.is_cold)]
    }

    /// Writes what follows to the cold section (or back to the hot one). Returns where it was written so far.
    pub fn set_cold(&mut self, is_cold: bool) -> bool {
        core::mem::replace(&mut self.is_cold, is_cold)
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
    pub fn address(&self) -> CachePc {
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
    pub fn patch(&mut self, address: CachePc, bytes: &[u8]) {
        for section in &mut self.sections {
            let start = section.base.distance_to(address) as usize;
            if start < section.position {
                if let Some(target) = section.buffer.get_mut(start..start + bytes.len()) {
                    target.copy_from_slice(bytes);
                }
                return;
            }
        }
    }
}
