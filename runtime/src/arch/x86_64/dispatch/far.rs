//! Far branches that stay in 64-bit code, done by the dispatcher: what changes is the instruction pointer, and with it the stack
//! pointer, the flags, or nothing else.
//!
//! Runs in the target on the runtime's stack. What is not quite plain (another segment, a stack that can't be read, flags with which
//! an iretq faults) is left to the processor (in_place.rs).

use crate::context::addresses::AppPc;
use crate::context::ThreadContext;
use crate::cpu::decode::addresses::is_canonical;
use crate::cpu::dispatch::float_state::address_of;
use crate::cpu::guarded;
use crate::cpu::selectors::{USER_CS, USER_PRIVILEGE, USER_SS};
use crate::cpu::sys::kernel::TRAP_FLAG;
use iced_x86::{Code, Instruction};

const NESTED_TASK: u64 = 1 << 14;
const ALIGNMENT_CHECK: u64 = 1 << 18;
/// The flags that an iretq of the user's loads (Intel SDM, IRET): carry, parity, adjust, zero, sign, trap, direction, overflow,
/// nested task, alignment check, identification. Resume has done its duty once the next instruction is.
const LOADED_FLAGS: u64 = 0x24_4dd5;

/// Makes the far branch at the context's rip, if it is a plain one. Guarded copies may fault. `false`: nothing was changed.
pub fn transfer(context: &mut ThreadContext, instruction: &Instruction) -> bool {
    if context.registers.flags & (TRAP_FLAG | NESTED_TASK | ALIGNMENT_CHECK) != 0
        || context.registers.stack_selector != 0
    {
        return false;
    }
    match instruction.code() {
        Code::Iretq => interrupt_return(context),
        Code::Retfq => far_return(context, 0),
        Code::Retfq_imm16 => far_return(context, u64::from(instruction.immediate16())),
        Code::Jmp_m1664 => far_jump(context, instruction, 8),
        Code::Jmp_m1632 => far_jump(context, instruction, 4),
        _ => false,
    }
}

fn interrupt_return(context: &mut ThreadContext) -> bool {
    let Some([rip, cs, rflags, rsp, ss]) = read_words(context.registers.general[4]) else {
        return false;
    };
    if cs as u16 != USER_CS || ss as u16 != USER_SS || !is_canonical(AppPc::from_raw(rip)) {
        return false;
    }
    context.registers.pc = AppPc::from_raw(rip);
    context.registers.general[4] = rsp;
    context.registers.flags = context.registers.flags & !LOADED_FLAGS | rflags & LOADED_FLAGS;
    context.note_step();
    true
}

fn far_return(context: &mut ThreadContext, dropped: u64) -> bool {
    let Some([rip, cs]) = read_words(context.registers.general[4]) else {
        return false;
    };
    if cs as u16 != USER_CS || !is_canonical(AppPc::from_raw(rip)) {
        return false;
    }
    context.registers.pc = AppPc::from_raw(rip);
    context.registers.general[4] = context.registers.general[4].wrapping_add(16 + dropped);
    true
}

/// A jump through a pointer in memory, whose offset has `size` bytes.
fn far_jump(context: &mut ThreadContext, instruction: &Instruction, size: usize) -> bool {
    let Some(address) = address_of(instruction, context) else {
        return false;
    };
    let mut pointer = [0; 10];
    if guarded::read_program(&mut pointer[..size + 2], address) != size + 2 {
        return false;
    }
    let selector = u16::from_le_bytes([pointer[size], pointer[size + 1]]);
    pointer[size..].fill(0);
    let pc = AppPc::from_raw(u64::from_le_bytes(core::array::from_fn(|i| pointer[i])));
    // The selector's privilege may be any (Intel SDM, JMP); what is loaded has the user's.
    if selector | USER_PRIVILEGE != USER_CS || !is_canonical(pc) {
        return false;
    }
    context.registers.pc = pc;
    true
}

/// `N` words of the stack that starts at `address`.
fn read_words<const N: usize>(address: u64) -> Option<[u64; N]> {
    let mut words = [[0u8; 8]; N];
    let bytes = words.as_flattened_mut();
    let size = bytes.len();
    (guarded::read_program(bytes, address) == size).then(|| words.map(u64::from_le_bytes))
}
