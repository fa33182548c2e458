//! Whether a thread executes other code than it did of late: seen from its counters, a few milliseconds at a time.
//!
//! Of each group of counters that lie together, a word is kept: the low half of their sum, and one bit for each of the last
//! periods in which it rose.

use crate::buffer::Shared;
use crate::context::layout::{ACTIVITY_BYTES, ACTIVITY_OFFSET};
use crate::context::numbers::CounterId;
use crate::context::ThreadContext;
use crate::protocol::PATH_WINDOW_BYTES;

const GROUP: u64 = 8;
const MAX_GROUPS: u64 = ACTIVITY_BYTES / 4;
/// One part in so many of the groups that rose has to be new for it to be other code.
const NEW_SHARE: u32 = 8;
const HISTORY_SHIFT: u32 = 16;

/// Notes which code was executed since the last time; whether much of it was not in the sixteen times before.
pub fn has_changed(context: &mut ThreadContext, shared: Shared) -> bool {
    context.left.is_kept_used = true;
    // SAFETY: the status page is mapped.
    let n_used = unsafe { (&raw const (*shared.status()).counters_used).read_volatile() };
    let n_used = n_used.min(shared.header().counter_bytes / 8);
    let words = (context.self_address + ACTIVITY_OFFSET) as *mut u32;
    let counters = context.counter(CounterId::of_cell(0));
    let (mut n_risen, mut n_new) = (0, 0);
    for group in PATH_WINDOW_BYTES / 8 / GROUP..(n_used / GROUP).min(MAX_GROUPS) {
        // SAFETY: counters below `n_used` are inside the thread's window, and there is a word for each group; only this
        // thread writes either.
        unsafe {
            let sum = (0..GROUP).fold(0u64, |sum, index| {
                sum.wrapping_add(counters.add((group * GROUP + index) as usize).read_volatile())
            });
            let word = words.add(group as usize);
            let before = word.read_volatile();
            let has_risen = before as u16 != sum as u16;
            let history = before >> HISTORY_SHIFT;
            if !has_risen && history == 0 {
                continue;
            }
            n_risen += u32::from(has_risen);
            n_new += u32::from(has_risen && history == 0);
            let history = (history << 1 | u32::from(has_risen)) & 0xffff;
            word.write_volatile(history << HISTORY_SHIFT | u32::from(sum as u16));
        }
    }
    n_new > 0 && n_new * NEW_SHARE >= n_risen
}
