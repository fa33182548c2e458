//! Leaving out parts of a thread's path, so that a process stays within its budget (mode `full`): what is new goes first, what
//! repeats itself is told as far as there is room.
//!
//! Runs in the dispatcher, between two fragments, as `path` does. Counters go on counting: what is left out is known by number.

use super::activity;
use super::checkpoint;
use super::path::{discard_all, flush, gap, go_on, is_full, leave_out, lose, Gap};
use crate::arch::x86_64::context::ThreadContext;
use crate::buffer::RingWriter;
use crate::protocol::PATH_NEWS_CELL;

/// As `path::tend`, of a process with a budget. `is_new`: the thread is about to come to code that never ran.
pub fn tend(context: &mut ThreadContext, writer: &RingWriter, is_between: bool, is_new: bool) -> bool {
    let goes_on = match gap(context) {
        Gap::Lost => is_between && go_on(context, writer),
        Gap::LeftOut => {
            if is_full(context) {
                discard_all(context);
            }
            return is_between && tend_left_out(context, writer, is_new);
        }
        Gap::None => false,
    };
    if is_new {
        set_news(context, true);
    }
    let is_due = is_between && checkpoint::is_due(context);
    if !is_due && !is_full(context) {
        return goes_on;
    }
    if is_due && activity::has_changed(context, writer.shared) {
        set_news(context, true);
    }
    let may_tell = if has_news(context) { writer.shared.may_tell_news() } else { writer.shared.may_tell_more(false) };
    if !may_tell {
        leave_out(context, writer);
        return goes_on;
    }
    flush(context, writer);
    set_news(context, false);
    if is_due && gap(context) == Gap::None && !checkpoint::write(context, writer) {
        lose(context);
    }
    goes_on
}

/// Of a thread whose path is left out now: whether it goes on with all anew to be told.
fn tend_left_out(context: &mut ThreadContext, writer: &RingWriter, is_new: bool) -> bool {
    let is_due = checkpoint::is_due(context);
    if !is_new && !is_due {
        return false;
    }
    let has_changed = is_due && activity::has_changed(context, writer.shared);
    if is_due {
        checkpoint::postpone(context);
    }
    let has_news = is_new || has_changed;
    let may_tell = if has_news { writer.shared.may_tell_news() } else { writer.shared.may_tell_more(true) };
    if !may_tell {
        return false;
    }
    set_news(context, has_news);
    let tells_anew = go_on(context, writer);
    if has_news {
        // What follows it may be what was left out before.
        checkpoint::hasten(context);
    }
    tells_anew
}

fn has_news(context: &ThreadContext) -> bool {
    // SAFETY: the cells are the first counters of the thread's mapped window.
    unsafe { context.counter(PATH_NEWS_CELL as u32).read_volatile() != 0 }
}

fn set_news(context: &ThreadContext, has_news: bool) {
    // SAFETY: as above; only the thread itself writes them.
    unsafe { context.counter(PATH_NEWS_CELL as u32).write_volatile(u64::from(has_news)) };
}
