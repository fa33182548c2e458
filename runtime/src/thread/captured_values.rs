//! The values of captures, as translated code has worked them out: in the thread's private block.

extern crate alloc;
use crate::context::layout::{CAPTURE_MISSING_OFFSET, CAPTURE_TEXTS_OFFSET, CAPTURE_VALUES_OFFSET};
use crate::context::ThreadContext;
use crate::instrument::captures::form::Kind;
use crate::instrument::captures::layout::Program;
use crate::instrument::captures::taken::Taken;
use crate::protocol::capture_operation as op;
use alloc::vec::Vec;

/// The values of a thread's captures, in its private block at `base` (instrument/captures/layout.rs).
pub struct Values {
    base: u64,
}

impl Values {
    pub fn of(context: &ThreadContext) -> Values {
        Values { base: context.self_address }
    }

    fn slot(&self, program: &Program, operation: usize) -> *mut u64 {
        (self.base + CAPTURE_VALUES_OFFSET + 8 * u64::from(program.slot(operation))) as *mut u64
    }

    fn text(&self, program: &Program, operation: usize) -> *mut u8 {
        (self.base + CAPTURE_TEXTS_OFFSET + u64::from(program.texts[operation])) as *mut u8
    }

    pub fn set(&self, program: &Program, operation: usize, value: u64) {
        // SAFETY: slots of laid out programs are inside the block, which is this thread's own.
        unsafe { self.slot(program, operation).write(value) };
    }

    pub fn set_text(&self, program: &Program, operation: usize, bytes: &[u8]) {
        // SAFETY: as above; the operation has room for as many bytes.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.text(program, operation), bytes.len()) };
        self.set(program, operation, bytes.len() as u64);
    }

    fn missing(&self, program: &Program, operation: usize) -> *mut u8 {
        (self.base + CAPTURE_MISSING_OFFSET + u64::from(program.slot(operation))) as *mut u8
    }

    pub fn set_missing(&self, program: &Program, operation: usize, is_missing: bool) {
        // SAFETY: as above.
        unsafe { self.missing(program, operation).write(u8::from(is_missing)) };
    }

    fn is_missing(&self, program: &Program, operation: usize) -> bool {
        // SAFETY: as above.
        program.may_miss[operation] && unsafe { self.missing(program, operation).read() } != 0
    }

    /// A capture's fields, as a record has them.
    pub fn take(&self, program: &Program) -> Taken {
        self.take_more(program, |_| Vec::new())
    }

    /// The same, with `more` behind the bytes of a backtrace.
    pub fn take_more(&self, program: &Program, more: impl Fn(&[u8]) -> Vec<u8>) -> Taken {
        let mut taken = Taken::default();
        for (index, operation) in program.form.fields.iter().map(|field| usize::from(*field)).enumerate() {
            if self.is_missing(program, operation) {
                taken.add_missing(index);
                continue;
            }
            let one = &program.form.operations[operation];
            if one.code == op::LITERAL {
                let (start, size) = one.literal();
                taken.add_bytes(&program.form.data[start..start + size]);
                continue;
            }
            // SAFETY: as above.
            let value = unsafe { self.slot(program, operation).read() };
            if program.form.kind_of(operation) != Kind::TEXT {
                taken.words.push(value);
                continue;
            }
            let size = (value as usize).min(program.text_room(operation));
            // SAFETY: as above; no more than the operation has room for.
            let bytes = unsafe { core::slice::from_raw_parts(self.text(program, operation), size) };
            if one.is_backtrace() {
                let mut whole = bytes.to_vec();
                whole.extend(more(bytes));
                taken.add_bytes(&whole);
            } else {
                taken.add_bytes(bytes);
            }
        }
        taken
    }
}
