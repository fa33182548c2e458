//! Leaving out parts of a thread's path, so that a process stays within its budget (mode `full`): what is new goes first, what
//! repeats itself is told as far as there is room.
//!
//! Runs in the dispatcher, between two fragments, as `path` does. Counters go on counting: what is left out is known by number.

use super::activity;
use super::checkpoint;
use super::path::{come_to_bytes, discard_all, flush, go_on, is_full, leave_out, ALL_PROMISED};
use crate::buffer::RingWriter;
use crate::context::ThreadContext;
use crate::thread::path_words::{gap, lose, Gap};

/// As `path::flush_due`, of a process with a budget. `is_new`: the thread is about to come to code that never ran.
pub fn flush_due(context: &mut ThreadContext, writer: &RingWriter, is_between: bool, is_new: bool) -> bool {
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
    if gap(context) == Gap::Lost {
        // Still: it is not to be taken for what was left out.
        return goes_on;
    }
    if context.path.promised_bytes == ALL_PROMISED {
        // What was written before there was a budget; what it takes is owed.
        flush(context, writer);
        context.path.promised_bytes = 0;
    }
    if is_new {
        context.path.has_news = true;
    }
    let is_due = is_between && checkpoint::is_due(context);
    if !is_due && !is_full(context) {
        return goes_on;
    }
    if is_due && activity::has_changed(context, writer.shared) {
        context.path.has_news = true;
    }
    let is_promised = come_to_bytes(context) < context.path.promised_bytes;
    let may_tell = if context.path.has_news || is_promised {
        writer.shared.may_tell_news()
    } else {
        writer.shared.may_tell_more()
    };
    if !may_tell {
        leave_out(context, writer);
        context.path.least_cost = 0;
        return goes_on;
    }
    flush(context, writer);
    context.path.has_news = false;
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
    let Some(stretch) = find_stretch(context, writer, has_news) else {
        return false;
    };
    context.path.has_news = has_news;
    let tells_anew = go_on(context, writer);
    context.path.promised_bytes = come_to_bytes(context) + stretch;
    tells_anew
}

/// How many bytes the thread may tell if it goes on here; `None`: it is too early, for what the checkpoint takes.
fn find_stretch(context: &mut ThreadContext, writer: &RingWriter, has_news: bool) -> Option<u64> {
    writer.shared.find_stretch(context.path.least_cost, has_news)?;
    let cost = checkpoint::find_cost(context, writer);
    let stretch = writer.shared.find_stretch(cost, has_news);
    if stretch.is_none() {
        // It only grows, and finding out takes as long as writing it: not to be done again and again.
        context.path.least_cost = cost + cost / 4;
    }
    stretch
}
