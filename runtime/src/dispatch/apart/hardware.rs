//! Hardware breakpoints that the program sets on code of its own, by perf_event_open(2): they are set on points in the runtime
//! (cpu::probe_points), where threads come by. And probes of the kernel that it sets: what was translated there goes.
//!
//! Runs on the runtime's stack, in the dispatcher, no lock held. Those on data need nothing: what the program accesses is at its own
//! address. Not known are those of a tracer, and those of processors, which are about all processes.

extern crate alloc;
use crate::context::addresses::AppPc;
use crate::context::ThreadContext;
use crate::cpu::sys::kernel::USER_END;
use crate::cpu::sys::number;
use crate::cpu::{guarded, probe_points};
use crate::dispatch::signals::masks;
use crate::instrument::ENGINE;
use crate::sys::calls::{program_call, thread_exists};
use crate::thread::registry::writer_of;
use alloc::vec::Vec;

/// _IOW('$', 11, struct perf_event_attr *)
const MODIFY_ATTRIBUTES: u32 = 0x4008_240b;

/// Offsets in `struct perf_event_attr`.
const SIZE_AT: usize = 4;
const BREAKPOINT_TYPE_AT: usize = 52;
const BREAKPOINT_ADDRESS_AT: usize = 56;
/// Behind the first version.
const PROBE_OFFSET_AT: usize = 64;
/// The first version's size, which 0 stands for, and the largest that the kernel reads (kernel/events/core.c, perf_copy_attr).
const FIRST_SIZE: u32 = 64;
const MAX_SIZE: u32 = 4096;

/// perf_event_open. `None`: nothing that concerns the runtime, and not made yet.
pub fn open(context: &mut ThreadContext, arguments: [u64; 6]) -> Option<i64> {
    if let Some(place) = place_of_probe(context, arguments[0]) {
        // SAFETY: the program's own call.
        let result = unsafe { program_call(number::PERF_EVENT_OPEN, arguments) };
        if result >= 0 {
            masks::with_faults(context, |context| {
                let mut engine = ENGINE.lock();
                let writer = writer_of(context, engine.shared);
                engine.meet_probe(&writer, place);
            });
        }
        return Some(result);
    }
    let tid = arguments[1] as u32 as i32;
    if tid < 0 || (tid != 0 && !thread_exists(tid as u32)) {
        return None;
    }
    let mut given = moved(context, arguments[0])?;
    let call = [given.as_mut_ptr() as u64, arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]];
    // SAFETY: reads the attributes, and writes their size where the kernel refuses it.
    let result = unsafe { program_call(number::PERF_EVENT_OPEN, call) };
    let size = &given[SIZE_AT..SIZE_AT + 4];
    // SAFETY: the kernel would have written the same there.
    masks::with_faults(context, |_| unsafe { guarded::write_program(arguments[0] + SIZE_AT as u64, size) });
    Some(result)
}

/// ioctl, by which an event becomes one with other attributes. `None`: as above.
pub fn change(context: &mut ThreadContext, arguments: [u64; 6]) -> Option<i64> {
    if arguments[1] as u32 != MODIFY_ATTRIBUTES {
        return None;
    }
    let mut given = moved(context, arguments[2])?;
    let call = [arguments[0], arguments[1], given.as_mut_ptr() as u64, 0, 0, 0];
    // SAFETY: as above.
    Some(unsafe { program_call(number::IOCTL, call) })
}

/// Where in a file a probe is to be, if the attributes at `address` may be those of one: its type is a number that the kernel gives
/// out as it starts (/sys/bus/event_source/devices/uprobe).
fn place_of_probe(context: &mut ThreadContext, address: u64) -> Option<u64> {
    const PERF_TYPE_MAX: u32 = 6;
    let mut first = [0; PROBE_OFFSET_AT + 8];
    if masks::with_faults(context, |_| guarded::read_program(&mut first, address)) != first.len() {
        return None;
    }
    let place = u64::from_le_bytes(core::array::from_fn(|i| first[PROBE_OFFSET_AT + i]));
    (u32::from_le_bytes([first[0], first[1], first[2], first[3]]) >= PERF_TYPE_MAX).then_some(place)
}

/// The attributes at `place` with a point's address, if they are a breakpoint's on code, which comes by there from now on.
fn moved(context: &mut ThreadContext, place: u64) -> Option<Vec<u8>> {
    const PERF_TYPE_BREAKPOINT: u32 = 5;
    const HW_BREAKPOINT_X: u32 = 4;
    let mut first = [0; FIRST_SIZE as usize];
    if masks::with_faults(context, |_| guarded::read_program(&mut first, place)) != first.len() {
        return None;
    }
    let word = |at: usize| u32::from_le_bytes([first[at], first[at + 1], first[at + 2], first[at + 3]]);
    if word(0) != PERF_TYPE_BREAKPOINT || word(BREAKPOINT_TYPE_AT) != HW_BREAKPOINT_X {
        return None;
    }
    let size = if word(SIZE_AT) == 0 { FIRST_SIZE } else { word(SIZE_AT) };
    let pc = u64::from(word(BREAKPOINT_ADDRESS_AT)) | u64::from(word(BREAKPOINT_ADDRESS_AT + 4)) << 32;
    if !(FIRST_SIZE..=MAX_SIZE).contains(&size) || pc == 0 || pc >= USER_END {
        return None;
    }
    let mut given = alloc::vec![0; size as usize];
    if masks::with_faults(context, |_| guarded::read_program(&mut given, place)) != given.len() {
        return None;
    }
    let pc = AppPc::from_raw(pc);
    let mut engine = ENGINE.lock();
    let is_new = probe_points::find(pc).is_none();
    let point = probe_points::take(pc)?;
    if is_new {
        let writer = writer_of(context, engine.shared);
        engine.begin_probe(&writer, pc);
        crate::dispatch::calls::call_table::handle_watched(&engine);
    }
    given[BREAKPOINT_ADDRESS_AT..BREAKPOINT_ADDRESS_AT + 8]
        .copy_from_slice(&probe_points::address(point).to_le_bytes());
    Some(given)
}
