//! Returns that the kernel has a probe on (uretprobes): where the function was entered it put the address of code of its own in place of
//! the return address. That code is executed natively, and for the records the return led to where the thread comes out of it.
//!
//! Runs in the target on the runtime's stack, in the dispatcher.

use crate::context::addresses::AppPc;
use crate::context::numbers::FragmentId;
use crate::context::ThreadContext;
use crate::instrument::ENGINE;
use crate::protocol::exit_kind;
use crate::sys::mappings::{look_through, open_list};
use crate::sys::proc_text;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU64, Ordering};

/// Where that code is, once it was seen. It stays there as long as the process has its memory.
static START: AtomicU64 = AtomicU64::new(0);
static END: AtomicU64 = AtomicU64::new(0);

/// Whether `pc` is in the kernel's code for probes, as far as is known.
pub fn is_known(pc: AppPc) -> bool {
    (START.load(Ordering::Relaxed)..END.load(Ordering::Acquire)).contains(&pc.raw())
}

fn is_in_code_of_kernel(pc: AppPc) -> bool {
    if is_known(pc) {
        return true;
    }
    let found = open_list().and_then(|file| {
        look_through(file, |mapping, rest| match (mapping.start..mapping.end).contains(&pc.raw()) {
            true => ControlFlow::Break(proc_text::is_of_probes(rest).then_some(mapping)),
            false => ControlFlow::Continue(()),
        })
    });
    let Some(mapping) = found.flatten() else {
        return false;
    };
    // In this order: what others see is never larger than one that there is.
    END.store(0, Ordering::Relaxed);
    START.store(mapping.start, Ordering::Release);
    END.store(mapping.end, Ordering::Release);
    true
}

/// The branch at the end of fragment `source` led to `target`. Whether that is a return which is to be counted when the thread comes out.
pub fn begin(context: &mut ThreadContext, source: FragmentId, target: AppPc) -> bool {
    {
        let engine = ENGINE.lock();
        let is_return = engine.cache.fragment(source).exit_kind == exit_kind::RETURN;
        if !is_return || engine.ranges.find(target).is_some() {
            return false;
        }
    }
    if !is_in_code_of_kernel(target) {
        return false;
    }
    context.stepping.probed_return = source.raw() + 1;
    true
}

/// Whether the thread is in the kernel's code after such a return: it is out of it soon, and signals wait so long.
pub fn is_inside(context: &ThreadContext) -> bool {
    context.stepping.probed_return != 0 && is_known(context.registers.pc)
}

/// The thread is about to execute natively what is at its pc.
pub fn note_native(context: &mut ThreadContext) {
    context.stepping.is_in_probe = u32::from(is_inside(context));
}
