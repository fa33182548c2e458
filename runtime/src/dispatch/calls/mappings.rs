//! What is mapped in the process, as the kernel tells: by /proc; and where the process can't open that (a root without /proc, no
//! descriptor left, a rule against it), by the controller, which reads it from outside.
//!
//! Runs on the runtime's stack, no lock held.

use crate::context::ThreadContext;
use crate::dispatch::life::dumpable::while_shown;
use crate::instrument::ENGINE;
use crate::protocol::{request_kind, PAGE_BYTES};
use crate::sys::mappings::{look_through, open_list};
use crate::sys::proc_text;
use crate::thread::registry::writer_of;
use core::ops::ControlFlow;

pub use crate::sys::proc_text::Mapping;

/// The mapping that holds `address`; `None`: there is none, or the kernel's own code for its probes, which it knows by its address.
pub fn find_mapping(context: &ThreadContext, address: u64) -> Option<Mapping> {
    let Some(file) = open_list() else {
        return ask_for(context, address).filter(|mapping| mapping.start <= address);
    };
    let found = look_through(file, |mapping, rest| match (mapping.start..mapping.end).contains(&address) {
        true => ControlFlow::Break((!proc_text::is_of_probes(rest)).then_some(mapping)),
        false => ControlFlow::Continue(()),
    });
    found.flatten()
}

/// Shows all mappings of the process to `visit`, by address.
pub fn visit_mappings(context: &ThreadContext, mut visit: impl FnMut(Mapping)) {
    if let Some(file) = open_list() {
        look_through(file, |mapping, _| {
            visit(mapping);
            ControlFlow::<()>::Continue(())
        });
        return;
    }
    let mut from = 0;
    while let Some(mapping) = ask_for(context, from).filter(|mapping| mapping.end > from) {
        from = mapping.end;
        visit(mapping);
    }
}

/// What the controller says is mapped at `address`, or is the first above.
fn ask_for(context: &ThreadContext, address: u64) -> Option<Mapping> {
    let shared = ENGINE.lock().shared;
    let writer = writer_of(context, shared);
    let is_there = while_shown(|| writer.request(request_kind::MAPPING, [address, 0, 0, 0])) == Some(1);
    let [start, end, protection, is_shared] = writer.answer();
    is_there.then_some(Mapping { start, end, protection, is_shared: is_shared != 0 })
}

/// Where memory from `start` on ends, of which a call names `size` bytes.
pub fn page_end(start: u64, size: u64) -> u64 {
    start.saturating_add(size.saturating_add(PAGE_BYTES - 1) & !(PAGE_BYTES - 1))
}
