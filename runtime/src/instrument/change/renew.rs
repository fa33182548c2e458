//! Code that the controller wants translated anew, though nothing about it has changed.
//!
//! What was translated goes out of use, and keeps what it counted; what was said of changes in its blocks is forgotten.

use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::instrument::Engine;
use crate::protocol::MAX_INVALIDATED_RANGES;

impl Engine {
    /// Takes what was translated of ranges out of use that the controller has told since this was asked last.
    pub(super) fn renew(&mut self, writer: &RingWriter) {
        let count = self.shared.invalidated_count();
        let before = core::mem::replace(&mut self.directives.n_invalidated, count);
        let n_new = count.wrapping_sub(before);
        if n_new > MAX_INVALIDATED_RANGES as u32 {
            self.renew_within(writer, AppPc::LOWEST, AppPc::HIGHEST);
            return;
        }
        for number in 0..n_new {
            let (start, end) = self.shared.invalidated_range(before.wrapping_add(number));
            if start < end {
                self.renew_within(writer, AppPc::from_raw(start), AppPc::from_raw(end));
            }
        }
    }

    fn renew_within(&mut self, writer: &RingWriter, start: AppPc, end: AppPc) {
        self.transforms.forget(start, end);
        if (start, end) == (AppPc::LOWEST, AppPc::HIGHEST) {
            self.retire_all(writer);
            return;
        }
        for id in self.fragments_within(start, end) {
            self.retire_to_be_made_again(writer, id);
        }
    }
}
