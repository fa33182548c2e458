//! What clew's own instructions do, for the tests of mangling.

use crate::cpu::translate::*;
use std::collections::HashMap;

pub const APP_GS_BASE: u64 = 0x7f12_3456_7000;

/// Small, fast and always the same.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn byte(&mut self) -> u8 {
        (self.next() >> 24) as u8
    }
}

/// The emitted code, interpreted as far as clew's own instructions go.
pub struct Machine {
    pub registers: [u64; 16],
    slots: HashMap<u64, u64>,
}

impl Machine {
    pub fn new() -> Machine {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let registers = core::array::from_fn(|_| random.next());
        Machine { registers, slots: HashMap::from([(u64::from(GS_APP_GS_BASE), APP_GS_BASE)]) }
    }

    /// What was stored in a slot; 0 if nothing was.
    pub fn slot(&self, displacement: u32) -> u64 {
        self.slots.get(&u64::from(displacement)).copied().unwrap_or(0)
    }

    /// A register's value; `None` for vector registers.
    fn read(&self, register: Register) -> Option<u64> {
        let full = register.full_register();
        if register == Register::None {
            return Some(0);
        }
        if !full.is_gpr64() {
            return None;
        }
        let value = self.registers[full.number()];
        Some(if register.size() == 4 { value & 0xffff_ffff } else { value })
    }

    /// The offset that the memory operand names, without its segment.
    pub fn address(&self, instruction: &Instruction) -> Option<u64> {
        if instruction.is_ip_rel_memory_operand() {
            return Some(instruction.ip_rel_memory_address());
        }
        let (base, index) = (instruction.memory_base(), instruction.memory_index());
        let mut sum = self.read(base)?;
        // pop computes its operand's address after it has moved rsp (Intel SDM, POP).
        let is_pop = matches!(instruction.code(), Code::Pop_rm64 | Code::Pop_rm16);
        if is_pop && base.full_register() == Register::RSP {
            sum = sum.wrapping_add(instruction.stack_pointer_increment() as u64);
        }
        sum = sum.wrapping_add(self.read(index)?.wrapping_mul(u64::from(instruction.memory_index_scale())));
        sum = sum.wrapping_add(instruction.memory_displacement64());
        let is_narrow = base.size() == 4 || index.size() == 4;
        Some(if is_narrow { sum & 0xffff_ffff } else { sum })
    }

    /// Does what a move or lea of clew's does; `false` where it is another instruction.
    pub fn step(&mut self, instruction: &Instruction) -> bool {
        let is_slot = instruction.segment_prefix() == Register::GS
            && matches!(instruction.memory_base(), Register::None | Register::EIP)
            && instruction.memory_index() == Register::None;
        let slot = instruction.memory_displacement64();
        let target = instruction.op0_register().full_register().number();
        match instruction.code() {
            Code::Mov_rm64_r64 if is_slot => {
                let value = self.registers[instruction.op1_register().number()];
                self.slots.insert(slot, value);
            }
            Code::Mov_r64_rm64 if is_slot => match self.slots.get(&slot) {
                Some(value) => self.registers[target] = *value,
                None => return false,
            },
            Code::Mov_rm32_imm32 if is_slot => {
                self.slots.insert(slot, u64::from(instruction.immediate32()));
            }
            Code::Mov_r32_imm32 => self.registers[target] = u64::from(instruction.immediate32()),
            Code::Mov_rm64_imm32 if instruction.op0_kind() == OpKind::Register => {
                self.registers[target] = instruction.immediate32to64() as u64
            }
            Code::Mov_r64_imm64 => self.registers[target] = instruction.immediate64(),
            Code::Lea_r64_m => match self.address(instruction) {
                Some(address) => self.registers[target] = address,
                None => return false,
            },
            _ => return false,
        }
        true
    }
}
