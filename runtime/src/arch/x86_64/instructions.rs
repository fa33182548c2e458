//! The few instructions that clew itself puts into the code cache.
//!
//! None of them but `inc` and `cmp` touches the flags.

use super::displacements::{GS_SPILL_INDEX, GS_SPILL_TARGET};
use super::emit::Emitter;
use super::{Gpr, INDEX, TARGET};
use crate::context::addresses::CachePc;

impl Emitter<'_> {
    /// An instruction with an operand in the thread's private block, in the form that this processor is fast with: prefix 66 or
    /// none, REX prefix (0: none) and opcode, the register field, the displacement, and how many bytes follow.
    pub(super) fn gs_operand(&mut self, prefix: &[u8], rex: u8, opcode: &[u8], field: u8, offset: u32, behind: u32) {
        let is_absolute = self.is_absolute();
        self.bytes(if is_absolute { &[0x65] } else { &[0x65, 0x67] });
        self.bytes(prefix);
        if rex != 0 {
            self.bytes(&[rex]);
        }
        self.bytes(opcode);
        if is_absolute {
            // No base, no index: the address is the displacement.
            self.bytes(&[field << 3 | 4, 0x25]);
            self.dword(offset);
        } else {
            // Relative to eip. The sum is cut to 32 bits (Intel SDM, RIP-relative addressing), so it is `offset` wherever the code is.
            self.bytes(&[field << 3 | 5]);
            let next = (self.address().raw() as u32).wrapping_add(4 + behind);
            self.dword(offset.wrapping_sub(next));
        }
    }

    fn gs_access(&mut self, opcode: u8, register: Gpr, wide: bool, displacement: u32) {
        let rex = 0x40 | (u8::from(wide) << 3) | ((register.0 >> 3) << 2);
        self.gs_operand(&[], rex, &[opcode], register.0 & 7, displacement, 0);
    }

    /// mov gs:[displacement], register
    pub fn store_gs(&mut self, displacement: u32, register: Gpr) {
        self.gs_access(0x89, register, true, displacement);
    }

    /// mov register, gs:[displacement]
    pub fn load_gs(&mut self, register: Gpr, displacement: u32) {
        self.gs_access(0x8b, register, true, displacement);
    }

    /// mov dword gs:[displacement], register (32 bits)
    pub fn store_gs32(&mut self, displacement: u32, register: Gpr) {
        self.gs_access(0x89, register, false, displacement);
    }

    /// mov register (32 bits), dword gs:[displacement]
    pub fn load_gs32(&mut self, register: Gpr, displacement: u32) {
        self.gs_access(0x8b, register, false, displacement);
    }

    /// mov dword gs:[displacement], immediate
    pub fn store_gs_immediate(&mut self, displacement: u32, immediate: u32) {
        self.gs_operand(&[], 0, &[0xc7], 0, displacement, 4);
        self.dword(immediate);
    }

    /// mov qword gs:[displacement], 0
    pub fn store_gs_zero(&mut self, displacement: u32) {
        self.gs_operand(&[], 0x48, &[0xc7], 0, displacement, 4);
        self.dword(0);
    }

    /// mov gs:[displacement + index], cl, dl or bl; the index one of r8 to r11
    pub fn store_gs_low_byte_at(&mut self, displacement: u32, index: Gpr, register: Gpr) {
        self.bytes(&[0x65, 0x41, 0x88, 0x80 | register.0 << 3 | (index.0 & 7)]);
        self.dword(displacement);
    }

    /// mov byte gs:[displacement + index], value; the index one of r8 to r11
    pub fn store_gs_byte_at(&mut self, displacement: u32, index: Gpr, value: u8) {
        self.bytes(&[0x65, 0x41, 0xc6, 0x80 | (index.0 & 7)]);
        self.dword(displacement);
        self.bytes(&[value]);
    }

    /// mov gs:[displacement + index * 8], register; both of r8 to r15
    pub fn store_gs_table(&mut self, displacement: u32, index: Gpr, register: Gpr) {
        self.bytes(&[0x65, 0x4e, 0x89, 0x04 | (register.0 & 7) << 3, 0xc5 | (index.0 & 7) << 3]);
        self.dword(displacement);
    }

    /// mov rcx, gs:[displacement + rcx * 8]
    pub fn load_rcx_gs_table(&mut self, displacement: u32) {
        self.bytes(&[0x65, 0x48, 0x8b, 0x0c, 0xcd]);
        self.dword(displacement);
    }

    /// not rcx: changes no flags
    pub fn invert_rcx(&mut self) {
        self.bytes(&[0x48, 0xf7, 0xd1]);
    }

    /// rorx target, source, count: changes no flags (BMI2)
    pub fn rotate_right(&mut self, target: Gpr, source: Gpr, count: u8) {
        let extensions = (!target.0 >> 3 & 1) << 7 | 1 << 6 | (!source.0 >> 3 & 1) << 5;
        self.bytes(&[0xc4, extensions | 3, 0xfb, 0xf0, 0xc0 | (target.0 & 7) << 3 | source.0 & 7, count]);
    }

    /// inc qword gs:[displacement]: all arithmetic flags but carry change
    pub fn increment_gs(&mut self, displacement: u32) {
        self.gs_operand(&[], 0x48, &[0xff], 0, displacement, 0);
    }

    /// inc word gs:[displacement]: all arithmetic flags but carry change
    pub fn increment_gs16(&mut self, displacement: u32) {
        self.gs_operand(&[0x66], 0, &[0xff], 0, displacement, 0);
    }

    /// mov register, immediate (64 bits, the shortest form)
    pub fn load_immediate(&mut self, register: Gpr, immediate: u64) {
        let high = register.0 >> 3;
        let low = register.0 & 7;
        if immediate <= u32::MAX as u64 {
            if high != 0 {
                self.bytes(&[0x41]);
            }
            self.bytes(&[0xb8 | low]);
            self.dword(immediate as u32);
        } else if immediate as i64 == immediate as i32 as i64 {
            self.bytes(&[0x48 | high, 0xc7, 0xc0 | low]);
            self.dword(immediate as u32);
        } else {
            self.bytes(&[0x48 | high, 0xb8 | low]);
            self.qword(immediate);
        }
    }

    /// Loads an address in the shortest form; changes no flags.
    pub fn load_address(&mut self, register: Gpr, value: u64) {
        let distance = value.wrapping_sub((self.address() + 7).raw()) as i64;
        if value > u64::from(u32::MAX) && distance == i64::from(distance as i32) {
            // lea register, [rip + distance]
            self.bytes(&[0x48 | ((register.0 >> 3) << 2), 0x8d, 0x05 | ((register.0 & 7) << 3)]);
            self.dword(distance as u32);
        } else {
            self.load_immediate(register, value);
        }
    }

    /// Puts the program's r10 and r11 into their slots.
    pub fn lend(&mut self) {
        self.store_gs(GS_SPILL_INDEX, INDEX);
        self.store_gs(GS_SPILL_TARGET, TARGET);
    }

    /// Takes the program's r10 and r11 out of their slots.
    pub fn take_back_lent(&mut self) {
        self.load_gs(INDEX, GS_SPILL_INDEX);
        self.load_gs(TARGET, GS_SPILL_TARGET);
    }

    /// mov [rsp], register, one of r8 to r15: the application's return address, where the processor's call put that of the
    /// cache.
    pub fn fill_return_slot(&mut self, register: Gpr) {
        self.bytes(&[0x4c, 0x89, 0x04 | ((register.0 & 7) << 3), 0x24]);
    }

    /// lea register, [register + displacement]
    pub fn add_immediate(&mut self, register: Gpr, displacement: i32) {
        self.add_registers(register, register, None, 1, displacement);
    }

    /// lea target, [base + index * scale + displacement]; the index must not be rsp
    pub fn add_registers(&mut self, target: Gpr, base: Gpr, index: Option<Gpr>, scale: u32, displacement: i32) {
        let index_code = index.map_or(4, |r| r.0);
        let rex = 0x48 | ((target.0 >> 3) << 2) | ((index_code >> 3) << 1) | (base.0 >> 3);
        let scale_code = scale.trailing_zeros() as u8;
        // mod: no displacement (which rbp and r13 can't go without), eight bits, 32 bits.
        let mode = match displacement {
            0 if base.0 & 7 != 5 => 0,
            -128..=127 => 1,
            _ => 2,
        };
        let needs_index_byte = index.is_some() || base.0 & 7 == 4;
        let operand = if needs_index_byte { 4 } else { base.0 & 7 };
        self.bytes(&[rex, 0x8d, mode << 6 | (target.0 & 7) << 3 | operand]);
        if needs_index_byte {
            self.bytes(&[(scale_code << 6) | ((index_code & 7) << 3) | (base.0 & 7)]);
        }
        match mode {
            0 => {}
            1 => self.bytes(&[displacement as i8 as u8]),
            _ => self.dword(displacement as u32),
        }
    }

    /// mov target, source
    pub fn copy_register(&mut self, target: Gpr, source: Gpr) {
        self.bytes(&[
            0x48 | ((source.0 >> 3) << 2) | (target.0 >> 3),
            0x89,
            0xc0 | ((source.0 & 7) << 3) | (target.0 & 7),
        ]);
    }

    /// mov target, [base]
    pub fn load_word(&mut self, target: Gpr, base: Gpr) {
        self.word_access(0x8b, target, base);
    }

    /// mov [base], source
    pub fn store_word(&mut self, base: Gpr, source: Gpr) {
        self.word_access(0x89, source, base);
    }

    /// Neither rsp, rbp, r12 nor r13 as base.
    fn word_access(&mut self, opcode: u8, register: Gpr, base: Gpr) {
        let rex = 0x48 | ((register.0 >> 3) << 2) | (base.0 >> 3);
        self.bytes(&[rex, opcode, (register.0 & 7) << 3 | (base.0 & 7)]);
    }

    /// movzx r10d, r11w: the index from the target
    pub fn index_from_target(&mut self) {
        self.bytes(&[0x45, 0x0f, 0xb7, 0xd3]);
    }

    /// jmp gs:[displacement + r10 * 8]
    pub fn jump_gs_table(&mut self, displacement: u32) {
        self.bytes(&[0x65, 0x42, 0xff, 0x24, 0xd5]);
        self.dword(displacement);
    }

    /// mov r10, gs:[displacement + r10 * 8]
    pub fn load_index_gs_table(&mut self, displacement: u32) {
        self.bytes(&[0x65, 0x4e, 0x8b, 0x14, 0xd5]);
        self.dword(displacement);
    }

    /// mov r11, [rsp]
    pub fn load_target_from_stack(&mut self) {
        self.bytes(&[0x4c, 0x8b, 0x1c, 0x24]);
    }

    /// cmp dword [address], value: sets the flags. The address must be within 2 GiB.
    pub fn compare_memory(&mut self, address: u64, value: u32) {
        let next = self.address() + 10;
        self.bytes(&[0x81, 0x3d]);
        self.dword(address.wrapping_sub(next.raw()) as u32);
        self.dword(value);
    }

    /// cmp byte [address], value: sets the flags. The address must be within 2 GiB.
    pub fn compare_memory_byte(&mut self, address: u64, value: u8) {
        let next = self.address() + 7;
        self.bytes(&[0x80, 0x3d]);
        self.dword(address.wrapping_sub(next.raw()) as u32);
        self.bytes(&[value]);
    }

    /// cmp dword [rcx + displacement], value: sets the flags.
    pub fn compare_memory_at_rcx(&mut self, displacement: u32, value: u32) {
        self.bytes(&[0x81, 0xb9]);
        self.dword(displacement);
        self.dword(value);
    }

    /// cmp byte [rcx + displacement], value: sets the flags.
    pub fn compare_memory_byte_at_rcx(&mut self, displacement: u32, value: u8) {
        self.bytes(&[0x80, 0xb9]);
        self.dword(displacement);
        self.bytes(&[value]);
    }

    /// lahf; seto al: the arithmetic flags to ax
    pub fn save_flags_to_rax(&mut self) {
        self.bytes(&[0x9f, 0x0f, 0x90, 0xc0]);
    }

    /// add al, 0x7f; sahf: the arithmetic flags from ax
    pub fn restore_flags_from_rax(&mut self) {
        self.bytes(&[0x04, 0x7f, 0x9e]);
    }

    /// push qword [literal]; returns the address of the rip-relative displacement for `bind`.
    pub fn push_literal(&mut self) -> CachePc {
        self.bytes(&[0xff, 0x35]);
        let place = self.address();
        self.dword(0);
        place
    }

    /// mov register, [literal]; returns the address of the rip-relative displacement for `bind`.
    pub fn load_literal(&mut self, register: Gpr) -> CachePc {
        self.bytes(&[0x48 | ((register.0 >> 3) << 2), 0x8b, 0x05 | ((register.0 & 7) << 3)]);
        let place = self.address();
        self.dword(0);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Mnemonic, Register};

    fn decode_one(emit: impl FnOnce(&mut Emitter)) -> iced_x86::Instruction {
        let mut buffer = [0u8; 64];
        let mut emitter = Emitter::new(&mut buffer, 0x1000, &mut [], 0);
        emit(&mut emitter);
        let size = emitter.position();
        let mut decoder = Decoder::with_ip(64, &buffer[..size], 0x1000, DecoderOptions::NONE);
        let instruction = decoder.decode();
        assert_eq!(instruction.len(), size);
        instruction
    }

    #[test]
    fn every_register_reaches_gs() {
        for number in 0..16 {
            let store = decode_one(|e| e.store_gs(0x1234, Gpr(number)));
            assert_eq!(store.mnemonic(), Mnemonic::Mov);
            assert_eq!(store.memory_segment(), Register::GS);
            assert_eq!(store.memory_displacement64(), 0x1234);
            assert_eq!(store.op1_register().number() as u8, number);
            let load = decode_one(|e| e.load_gs(Gpr(number), 0x88));
            assert_eq!(load.op0_register().number() as u8, number);
            assert_eq!(load.op0_register().size(), 8);
        }
    }

    #[test]
    fn both_forms_name_the_same_place_and_are_equally_long() {
        let emits: [fn(&mut Emitter); 9] = [
            |e| e.store_gs(0x1234, Gpr(9)),
            |e| e.load_gs32(Gpr(3), 0x1234),
            |e| e.store_gs_immediate(0x1234, 77),
            |e| e.store_gs_zero(0x1234),
            |e| e.increment_gs(0x1234),
            |e| e.increment_gs16(0x1234),
            |e| e.load_gs_byte_to_rcx(0x1234),
            |e| e.load_gs_word_to_target(0x1234),
            |e| e.store_gs_byte_of_rcx(0x1234),
        ];
        for (index, emit) in emits.into_iter().enumerate() {
            let [by_eip, absolute] = [false, true].map(|is_absolute| {
                decode_one(|e| {
                    e.set_absolute(is_absolute);
                    emit(e);
                })
            });
            assert_eq!((by_eip.memory_base(), absolute.memory_base()), (Register::EIP, Register::None), "{index}");
            assert_eq!((by_eip.code(), by_eip.len()), (absolute.code(), absolute.len()), "{index}");
            for form in [by_eip, absolute] {
                assert_eq!((form.memory_segment(), form.memory_displacement64()), (Register::GS, 0x1234), "{index}");
            }
        }
    }

    #[test]
    fn rotations_name_their_registers() {
        for (target, source) in (0..16).flat_map(|target| (0..16).map(move |source| (target, source))) {
            let instruction = decode_one(|emitter| emitter.rotate_right(Gpr(target), Gpr(source), 32));
            assert_eq!(instruction.code(), iced_x86::Code::VEX_Rorx_r64_rm64_imm8);
            let numbers = [instruction.op0_register(), instruction.op1_register()].map(|register| register.number());
            assert_eq!((numbers, instruction.immediate8()), ([target as usize, source as usize], 32));
        }
    }

    #[test]
    fn immediates_keep_their_value() {
        for value in [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0xffff_ffff_8000_0000, 0x1234_5678_9abc_def0] {
            for number in [0, 1, 8, 15] {
                let load = decode_one(|e| e.load_immediate(Gpr(number), value));
                let immediate = load.immediate(1);
                assert_eq!(immediate, value, "{load:?}");
            }
        }
    }

    #[test]
    fn lea_forms_keep_their_operands() {
        for target in 0..16 {
            for base in 0..16 {
                for displacement in [0, 1, -5, 127, -128, 128, -129, i32::MIN] {
                    let add = decode_one(|e| e.add_registers(Gpr(target), Gpr(base), Some(Gpr(9)), 8, displacement));
                    assert_eq!(add.mnemonic(), Mnemonic::Lea);
                    assert_eq!(add.op0_register().number() as u8, target);
                    assert_eq!(add.memory_base().number() as u8, base);
                    assert_eq!(add.memory_index(), Register::R9);
                    assert_eq!(add.memory_index_scale(), 8);
                    assert_eq!(add.memory_displacement64() as i64, i64::from(displacement));
                    let plain = decode_one(|e| e.add_registers(Gpr(target), Gpr(base), None, 1, displacement));
                    assert_eq!(plain.memory_base().number() as u8, base);
                    assert_eq!(plain.memory_index(), Register::None);
                    assert_eq!(plain.memory_displacement64() as i64, i64::from(displacement));
                }
            }
        }
    }
}
