//! Signal frames as the kernel builds them, built by the runtime.

use crate::context::layout::{FRAME_BYTES, FRAME_OFFSET};
use crate::context::ThreadContext;
use crate::cpu::extended_state;
use crate::cpu::selectors::{USER_CS, USER_SS};
use crate::cpu::signal::interrupt::app_pc_at;
use crate::cpu::sys::kernel::SigContext;
use crate::cpu::sys::kernel::SigFrame;
use crate::cpu::sys::kernel::FP_XSTATE_MAGIC1;
use crate::cpu::sys::kernel::FP_XSTATE_MAGIC2;
use crate::cpu::sys::kernel::FX_SW_BYTES_OFFSET;
use crate::cpu::sys::kernel::UC_FP_XSTATE;
use crate::cpu::sys::kernel::UC_SIGCONTEXT_SS;
use crate::cpu::sys::kernel::UC_STRICT_RESTORE_SS;
use crate::instrument::ENGINE;
use crate::sys::kernel::{SigInfo, SigStack};
use crate::thread::trust::write_program;

/// Offsets in the legacy area: MXCSR, xmm0; then the header's XSTATE_BV.
const MXCSR_OFFSET: usize = 24;
const XMM_OFFSET: usize = 160;
const XSTATE_BV_OFFSET: usize = 512;

/// Where a frame's parts go.
#[derive(Clone, Copy)]
pub struct FramePlace {
    pub frame: u64,
    pub fpstate: u64,
}

/// Lays out a frame with the extended state of `features` below `stack` as the kernel does (arch/x86/kernel/signal.c,
/// get_sigframe).
pub fn place_below(stack: u64, features: u64) -> FramePlace {
    place_with_state(stack, fpstate_bytes(features))
}

/// As `place_below`, for a copy of a frame whose extended state takes `bytes`.
pub fn place_with_state(stack: u64, bytes: usize) -> FramePlace {
    let fpstate = (stack - bytes as u64) & !63;
    let frame = ((fpstate - size_of::<SigFrame>() as u64) & !15) - 8;
    FramePlace { frame, fpstate }
}

fn fpstate_bytes(features: u64) -> usize {
    extended_state::area_bytes(features) + if extended_state::has_xsave() { 4 } else { 0 }
}

/// How many bytes the extended state of a frame takes that the kernel built.
///
/// # Safety
/// `area` must be the `fpstate` of such a frame.
pub unsafe fn kernel_fpstate_bytes(area: *const u8) -> usize {
    // SAFETY: the legacy area is there always; the kernel writes these words with XSAVE only, and zeroes without.
    let software = unsafe { area.add(FX_SW_BYTES_OFFSET).cast::<[u32; 2]>().read() };
    match software {
        [FP_XSTATE_MAGIC1, extended_bytes] => extended_bytes as usize,
        _ => 512,
    }
}

/// What goes into a frame besides the context's registers.
pub struct FrameContent<'a> {
    pub rip: u64,
    pub return_address: u64,
    pub info: &'a SigInfo,
    pub mask: u64,
    pub stack: SigStack,
    /// err, trapno, cr2
    pub details: [u64; 3],
}

/// Writes a frame to the thread's own frame area: the context's registers and the vector state, of which xmm and MXCSR are in the
/// context and the rest in the processor, or where `keep_state` put it.
pub fn write_to_own(context: &ThreadContext, content: &FrameContent) -> FramePlace {
    let place = own_place(context);
    write(place, context, content, extended_state::features());
    place
}

/// Writes a frame to the program's stack, at `place`, which was laid out for `features`; `false` where that can't be written.
/// Guarded copies may fault.
pub fn write_to_program(place: FramePlace, context: &ThreadContext, content: &FrameContent, features: u64) -> bool {
    let own = own_place(context);
    write(place, context, content, features);
    // SAFETY: the frame area is the thread's own, and the kernel would write the same bytes to the program's stack.
    unsafe {
        let frame = core::slice::from_raw_parts(own.frame as *const u8, size_of::<SigFrame>());
        let state = core::slice::from_raw_parts(own.fpstate as *const u8, fpstate_bytes(features));
        write_program(context, place.frame, frame) && write_program(context, place.fpstate, state)
    }
}

/// Writes to the thread's own frame area a frame that is to lie at `shown`.
fn write(shown: FramePlace, context: &ThreadContext, content: &FrameContent, features: u64) {
    let own = own_place(context);
    // SAFETY: the frame area is the thread's own, and any bytes are a frame.
    let frame = unsafe { &mut *(own.frame as *mut SigFrame) };
    frame.return_address = content.return_address;
    frame.info = *content.info;
    let ucontext = &mut frame.ucontext;
    // arch/x86/kernel/signal_64.c, frame_uc_flags.
    let xstate_flag = if extended_state::has_xsave() { UC_FP_XSTATE } else { 0 };
    let strict_flag = if context.registers.code_selector == 0 { UC_STRICT_RESTORE_SS } else { 0 };
    ucontext.flags = xstate_flag | UC_SIGCONTEXT_SS | strict_flag;
    ucontext.link = 0;
    ucontext.stack = content.stack;
    ucontext.sigmask = content.mask;
    let machine = &mut ucontext.mcontext;
    machine.set_registers(&context.registers.general);
    machine.rip = content.rip;
    machine.rflags = context.registers.flags;
    machine.cs = if context.registers.code_selector == 0 { USER_CS } else { context.registers.code_selector };
    (machine.gs, machine.fs) = (0, 0);
    machine.ss = if context.registers.stack_selector == 0 { USER_SS } else { context.registers.stack_selector };
    [machine.err, machine.trapno, machine.cr2] = content.details;
    machine.oldmask = content.mask;
    machine.fpstate = shown.fpstate;
    machine.reserved = [0; 8];
    // SAFETY: it is aligned, and there is room for all features.
    unsafe { write_fpstate(own.fpstate as *mut u8, context, features) };
}

/// # Safety
/// `area` must be 64-aligned and as long as `features` need, and the thread's own where its state is apart.
unsafe fn write_fpstate(area: *mut u8, context: &ThreadContext, features: u64) {
    let size = extended_state::area_bytes(features);
    // SAFETY: all writes are inside the area; XSAVE needs its header zeroed.
    unsafe {
        if context.signals.has_state_apart == 0 {
            core::ptr::write_bytes(area, 0, size);
            extended_state::save(area, features);
        }
        area.add(MXCSR_OFFSET).cast::<u32>().write(context.vector.mxcsr);
        area.add(XMM_OFFSET).cast::<[[u64; 2]; 16]>().write(context.vector.xmm);
        let last_x87 = area.add(extended_state::LAST_X87_OFFSET).cast::<u64>();
        // Arenas are read without a lock, as by the signal handler.
        if let Some(app_pc) = app_pc_at(&ENGINE.peek().cache, last_x87.read()) {
            last_x87.write(app_pc.raw());
        }
        if !extended_state::has_xsave() {
            return;
        }
        let state_bits = area.add(XSTATE_BV_OFFSET).cast::<u64>();
        // The xmm registers just written count, even if the processor thought them initial.
        state_bits.write(state_bits.read() | 2);
        // struct _fpx_sw_bytes: magic1, extended_size, xfeatures, xstate_size.
        let software = area.add(FX_SW_BYTES_OFFSET);
        software.cast::<u32>().write(FP_XSTATE_MAGIC1);
        software.add(4).cast::<u32>().write(size as u32 + 4);
        software.add(8).cast::<u64>().write_unaligned(features);
        software.add(16).cast::<u32>().write(size as u32);
        area.add(size).cast::<u32>().write_unaligned(FP_XSTATE_MAGIC2);
    }
}

/// Keeps the program's extended state, which is in the kernel's frame `machine`, in the thread's own frame area, and its xmm and
/// MXCSR in the context. `false`, with nothing done, if it is laid out in another way there, or if the processor's own is more
/// than what a handler begins with.
pub fn keep_state(context: &mut ThreadContext, machine: &SigContext) -> bool {
    let features = extended_state::features();
    let size = extended_state::area_bytes(features);
    let source = machine.fpstate as *const u8;
    if !extended_state::has_xsave() || source.is_null() {
        return false;
    }
    // SAFETY: the kernel's frame has an area with these words, and is as long as they say; the thread's own has room for it.
    unsafe {
        let software = source.add(FX_SW_BYTES_OFFSET);
        let shape = (software.cast::<[u32; 2]>().read(), software.add(8).cast::<u64>().read_unaligned());
        if shape != ([FP_XSTATE_MAGIC1, size as u32 + 4], features) || extended_state::has_other_keys(source, features)
        {
            return false;
        }
        let area = own_place(context).fpstate as *mut u8;
        core::ptr::copy_nonoverlapping(source, area, size + 4);
        context.vector.mxcsr = area.add(MXCSR_OFFSET).cast::<u32>().read();
        context.vector.xmm = area.add(XMM_OFFSET).cast::<[[u64; 2]; 16]>().read();
    }
    // SAFETY: a field of a live context, which a signal that comes meanwhile reads (signal/nested.rs).
    unsafe { (&raw mut context.signals.has_state_apart).write_volatile(1) };
    true
}

/// The processor has the program's extended state again, but for xmm and MXCSR, which the gates load.
pub fn load_state(context: &mut ThreadContext) {
    if core::mem::take(&mut context.signals.has_state_apart) != 0 {
        // SAFETY: `keep_state` put a whole area there that the kernel had made.
        unsafe { extended_state::load(own_place(context).fpstate as *const u8, extended_state::features()) };
    }
}

/// Where in the thread's private block frames are made: those of the runtime's own rt_sigreturn, and those of the program.
pub fn own_place(context: &ThreadContext) -> FramePlace {
    let start = context.self_address + FRAME_OFFSET;
    FramePlace { frame: start + OWN_FRAME_OFFSET, fpstate: start }
}

/// Behind the extended state, of which there is less by far.
const OWN_FRAME_OFFSET: u64 = FRAME_BYTES - 0x400;
const _: () = assert!(size_of::<SigFrame>() <= 0x400 && FRAME_OFFSET.is_multiple_of(64));
const _: () = assert!((OWN_FRAME_OFFSET as usize).is_multiple_of(align_of::<SigFrame>()));
