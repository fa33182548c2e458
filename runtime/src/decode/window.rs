//! Code, copied from the program's memory piece by piece as it is needed.
//!
//! Copied, because it may go while it is looked at: a file's end moves, and what may be executed need not be readable.

use super::ranges::{Kind, Ranges};
use super::trusted::{page_of, page_start};
use crate::context::addresses::AppPc;
use crate::cpu::guarded;

/// Bytes read at a time: few blocks are longer, and what lies behind is not touched for nothing.
const STEP: usize = 64;

/// A copy of the code from `start` on, over adjacent executable ranges.
pub struct CodeWindow<'a> {
    buffer: &'a mut [u8],
    start: AppPc,
    filled: usize,
    /// What may be read at most.
    limit: usize,
    /// Bytes of one kind at the start.
    pub same_kind: usize,
    /// That kind.
    pub kind: Kind,
}

impl<'a> CodeWindow<'a> {
    /// The code at `start`, at most as much as `buffer` holds.
    pub fn open(buffer: &'a mut [u8], ranges: &Ranges, start: AppPc) -> CodeWindow<'a> {
        let run = ranges.run_at(start, buffer.len());
        CodeWindow { buffer, start, filled: 0, limit: run.size, same_kind: run.same_kind, kind: run.kind }
    }

    /// Leaves out what is of another kind than the start.
    pub fn keep_to_kind(&mut self) {
        self.limit = self.limit.min(self.same_kind);
    }

    /// Leaves out what lies behind the first page.
    pub fn keep_to_page(&mut self) {
        let page_end = page_start(page_of(self.start) + 1);
        self.limit = self.limit.min(page_end.bytes_behind(self.start) as usize);
    }

    /// What was read so far.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    /// Whether there may be more than was read.
    pub fn is_open(&self) -> bool {
        self.filled < self.limit
    }

    /// Reads on. What can't be read ends the window.
    pub fn extend(&mut self) {
        let end = (self.filled + STEP).min(self.limit);
        let target = &mut self.buffer[self.filled..end];
        let wanted = target.len();
        let read = guarded::read_code(target, self.start.wrapping_add(self.filled as u64));
        self.filled += read;
        if read < wanted {
            self.limit = self.filled;
        }
    }

    /// Whether what was read at `position` is other than `code`.
    pub fn differs(&self, position: usize, code: &[u8]) -> bool {
        let there = &self.bytes()[position..];
        let length = there.len().min(code.len());
        there[..length] != code[..length]
    }

    /// Puts `code` at `position`, as far as code was read there.
    pub fn put(&mut self, position: usize, code: &[u8]) {
        let end = self.filled.min(position + code.len());
        let there = &mut self.buffer[position..end];
        there.copy_from_slice(&code[..there.len()]);
    }

    /// The first address that was not read.
    pub fn end(&self) -> AppPc {
        self.start.wrapping_add(self.filled as u64)
    }
}
