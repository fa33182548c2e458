//! What a handler's machine code does not do by itself: it leaves for here, and goes on behind.
//!
//! Runs in the thread that came to the probe, on its block's stack, all its registers in its context. Its block is busy, so that a signal's
//! handler which comes to a probe takes nothing.

use super::asked::Probed;
use super::sites::{site_of, Site};
use crate::context::ThreadContext;
use crate::cpu::sys::clock::ticks;
use crate::instrument::captures::layout::Action;
use crate::instrument::captures::taken::Taken;
use crate::instrument::captures::taken_records::{add, record, Heading};
use crate::instrument::ENGINE;
use crate::sys::calls::set_signal_mask;
use crate::thread::registry::writer_of;

/// What the gates call: where the thread goes on. A handler of the program's that never came back would keep a lock of the heap's, so
/// none comes meanwhile.
pub extern "C" fn dispatch(context: &mut ThreadContext, _reason: u32) -> u64 {
    let Some(site) = site_of(context.gate.exit_id.raw()) else {
        // No handler is made before its number is known.
        loop {
            core::hint::spin_loop();
        }
    };
    let mask = set_signal_mask(u64::MAX);
    context.registers.pc = site.pc;
    take(context, site);
    set_signal_mask(mask);
    site.behind.raw()
}

/// Takes what is captured at a place.
fn take(context: &mut ThreadContext, site: &Site) {
    // SAFETY: `shared` is set before any code leads here, and never changes.
    let shared = unsafe { ENGINE.peek() }.shared;
    let writer = writer_of(context, shared);
    context.capture.outcome = 0;
    let tsc = ticks();
    shared.stamp_now_and_then(tsc);
    for program in &site.place.programs {
        let mut taken = Taken::default();
        if !taken.evaluate(program, &Probed { context }) {
            continue;
        }
        match &program.action {
            Action::Record => {
                let heading = Heading { tid: context.tid, pc: site.pc, tsc, number: program.number };
                record(&writer, &heading, &taken);
            }
            Action::Aggregate(table) => add(&taken, program, table, shared.outlets().aggregates),
            _ => {}
        }
    }
}
