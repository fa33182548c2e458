//! Signal frames as the kernel builds them, built by the runtime.

use super::interrupt::app_pc_at;
use crate::arch::x86_64::context::{ThreadContext, FRAME_BYTES, FRAME_OFFSET};
use crate::arch::x86_64::selectors::{USER_CS, USER_SS};
use crate::arch::x86_64::xsave;
use crate::instrument::ENGINE;
use crate::sys::kernel::{
    SigContext, SigFrame, SigInfo, SigStack, UContext, FP_XSTATE_MAGIC1, FP_XSTATE_MAGIC2, FX_SW_BYTES_OFFSET,
    UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS,
};
use crate::thread::trust::write_program;

/// Offsets in the legacy area: MXCSR, xmm0; then the header's XSTATE_BV.
const MXCSR_OFFSET: usize = 24;
const XMM_OFFSET: usize = 160;
const XSTATE_BV_OFFSET: usize = 512;

/// Where a frame's parts go below a stack pointer.
#[derive(Clone, Copy)]
pub struct FramePlace {
    pub frame: u64,
    pub fpstate: u64,
}

/// Lays out a frame below `stack` as the kernel does (arch/x86/kernel/signal.c, get_sigframe).
pub fn place_below(stack: u64) -> FramePlace {
    place_with_state(stack, fpstate_bytes())
}

/// As `place_below`, for a copy of a frame whose extended state takes `bytes`.
pub fn place_with_state(stack: u64, bytes: usize) -> FramePlace {
    let fpstate = (stack - bytes as u64) & !63;
    let frame = ((fpstate - size_of::<SigFrame>() as u64) & !15) - 8;
    FramePlace { frame, fpstate }
}

fn fpstate_bytes() -> usize {
    xsave::area_bytes(xsave::features()) + if xsave::has_xsave() { 4 } else { 0 }
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
pub struct FrameContent {
    pub rip: u64,
    pub return_address: u64,
    pub info: SigInfo,
    pub mask: u64,
    pub stack: SigStack,
    /// err, trapno, cr2
    pub details: [u64; 3],
}

/// Writes a frame at `place`: the context's registers and the vector state, of which xmm and MXCSR are in the context and
/// the rest in the processor.
///
/// # Safety
/// The memory from the frame up to the stack pointer it was placed below must be writable.
pub unsafe fn write(place: FramePlace, context: &ThreadContext, content: &FrameContent) {
    // SAFETY: forwarded.
    unsafe { write_for(place, place, context, content) }
}

/// Writes a frame to the program's stack, at `place`; `false` where that can't be written. Guarded copies may fault.
pub fn write_to_program(place: FramePlace, context: &ThreadContext, content: &FrameContent) -> bool {
    let own = own_place(context);
    // SAFETY: the frame area is the thread's own; what is written below lies in it, and the kernel would write the same
    // bytes to the program's stack.
    unsafe {
        write_for(own, place, context, content);
        let frame = core::slice::from_raw_parts(own.frame as *const u8, size_of::<SigFrame>());
        let state = core::slice::from_raw_parts(own.fpstate as *const u8, fpstate_bytes());
        write_program(context, place.frame, frame) && write_program(context, place.fpstate, state)
    }
}

/// Writes at `place` a frame that is to lie at `shown`.
///
/// # Safety
/// As `write`, for `place`.
unsafe fn write_for(place: FramePlace, shown: FramePlace, context: &ThreadContext, content: &FrameContent) {
    let mut machine = SigContext {
        r8: 0,
        r9: 0,
        r10: 0,
        r11: 0,
        r12: 0,
        r13: 0,
        r14: 0,
        r15: 0,
        rdi: 0,
        rsi: 0,
        rbp: 0,
        rbx: 0,
        rdx: 0,
        rax: 0,
        rcx: 0,
        rsp: 0,
        rip: content.rip,
        rflags: context.rflags,
        cs: if context.code_selector == 0 { USER_CS } else { context.code_selector },
        gs: 0,
        fs: 0,
        ss: if context.stack_selector == 0 { USER_SS } else { context.stack_selector },
        err: content.details[0],
        trapno: content.details[1],
        oldmask: content.mask,
        cr2: content.details[2],
        fpstate: shown.fpstate,
        reserved: [0; 8],
    };
    machine.set_registers(&context.registers);
    let xstate_flag = if xsave::has_xsave() { UC_FP_XSTATE } else { 0 };
    // arch/x86/kernel/signal_64.c, frame_uc_flags.
    let strict_flag = if context.code_selector == 0 { UC_STRICT_RESTORE_SS } else { 0 };
    let frame = SigFrame {
        return_address: content.return_address,
        ucontext: UContext {
            flags: xstate_flag | UC_SIGCONTEXT_SS | strict_flag,
            link: 0,
            stack: content.stack,
            mcontext: machine,
            sigmask: content.mask,
        },
        info: content.info,
    };
    // SAFETY: the caller promises the memory; `place` is aligned as the structures need.
    unsafe {
        (place.frame as *mut SigFrame).write_unaligned(frame);
        write_fpstate(place.fpstate as *mut u8, context);
    }
}

/// # Safety
/// `area` must be 64-aligned and `fpstate_bytes()` long.
unsafe fn write_fpstate(area: *mut u8, context: &ThreadContext) {
    let features = xsave::features();
    let size = xsave::area_bytes(features);
    // SAFETY: all writes are inside the area; XSAVE needs its header zeroed.
    unsafe {
        core::ptr::write_bytes(area, 0, size);
        xsave::save(area, features);
        area.add(MXCSR_OFFSET).cast::<u32>().write(context.mxcsr);
        area.add(XMM_OFFSET).cast::<[[u64; 2]; 16]>().write(context.xmm);
        let last_x87 = area.add(xsave::LAST_X87_OFFSET).cast::<u64>();
        // Arenas are read without a lock, as by the signal handler.
        if let Some(app_pc) = app_pc_at(&ENGINE.peek().cache, last_x87.read()) {
            last_x87.write(app_pc);
        }
        if !xsave::has_xsave() {
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

/// A frame in the thread's private block, for the runtime's own rt_sigreturn.
pub fn own_place(context: &ThreadContext) -> FramePlace {
    place_below(context.self_address + FRAME_OFFSET + FRAME_BYTES - 64)
}
