//! The address of the last x87 instruction where the program stored it: the program's, not that of the copy in the cache.
//!
//! Runs in the target on the runtime's stack, in the dispatcher, behind the instruction that stores it.

use crate::cache::{Cache, Fragment};
use crate::context::addresses::AppPc;
use crate::context::ThreadContext;
use crate::cpu::decode::block::decoder_options;
use crate::cpu::decode::float_state::{is_x87, stored_pointer, StoredPointer};
use crate::cpu::decode::MAX_INSTRUCTION_BYTES;
use crate::cpu::guarded;
use crate::cpu::signal::interrupt::app_pc_at;
use crate::cpu::thread_pointer;
use crate::dispatch::signals::masks;
use crate::instrument::ENGINE;
use iced_x86::{Decoder, Instruction, Register};

/// Corrects what the last instruction of `fragment`, just executed, stored.
pub fn correct(context: &mut ThreadContext, fragment: &Fragment) {
    let pc = fragment.branch_pc();
    masks::with_faults(context, |context| {
        let mut code = [0; MAX_INSTRUCTION_BYTES];
        let n = guarded::read_code(&mut code, pc);
        let instruction = Decoder::with_ip(64, &code[..n], pc.raw(), decoder_options()).decode();
        // Other threads may have written over it since.
        let Some(pointer) = stored_pointer(&instruction) else {
            return;
        };
        if let Some(address) = address_of(&instruction, context) {
            correct_at(address.wrapping_add(pointer.offset), pointer);
        }
    });
}

fn correct_at(address: u64, pointer: StoredPointer) {
    let mut bytes = [0; 8];
    if guarded::read_program(&mut bytes[..pointer.size], address) != pointer.size {
        return;
    }
    let stored = u64::from_le_bytes(bytes);
    // SAFETY: arenas are read without a lock, as by the signal handler.
    let cache = unsafe { &ENGINE.peek().cache };
    let app_pc = if pointer.size == 8 { app_pc_at(cache, stored) } else { find_truncated(cache, stored) };
    if let Some(app_pc) = app_pc {
        // SAFETY: the program has just had the processor write there.
        unsafe { guarded::write_program(address, &app_pc.raw().to_le_bytes()[..pointer.size]) };
    }
}

/// The program's address of the x87 instruction whose copy has an address that ends with the 32 bits `low`.
fn find_truncated(cache: &Cache, low: u64) -> Option<AppPc> {
    cache.slabs.starts().find_map(|start| {
        let distance = low.wrapping_sub(start) & 0xffff_ffff;
        let app_pc = app_pc_at(cache, start + distance)?;
        let mut code = [0; MAX_INSTRUCTION_BYTES];
        let n = guarded::read_code(&mut code, app_pc);
        is_x87(&code[..n]).then_some(app_pc)
    })
}

/// The address of the memory operand. Its registers are as they were before the instruction.
pub fn address_of(instruction: &Instruction, context: &ThreadContext) -> Option<u64> {
    instruction.virtual_address(0, 0, |register, _, _| match register {
        Register::FS => Some(thread_pointer()),
        Register::GS => Some(context.registers.gs_base),
        _ if register.is_segment_register() => Some(0),
        _ => context.registers.general.get(register.number()).copied(),
    })
}
