//! Jumps and calls that the runtime emits.

use super::displacements::{GS_EXIT_ID, GS_GATE_EXIT};
use super::emit::Emitter;
use crate::context::addresses::CachePc;
use crate::context::numbers::ExitId;

impl Emitter<'_> {
    /// Leaves for the dispatcher by an exit.
    pub fn leave_by(&mut self, exit_id: ExitId) {
        self.store_gs_immediate(GS_EXIT_ID, exit_id.raw());
        self.jump_gs(GS_GATE_EXIT);
    }

    /// jmp gs:[displacement]
    pub fn jump_gs(&mut self, displacement: u32) {
        self.bytes(&[0x65, 0xff, 0x24, 0x25]);
        self.dword(displacement);
    }

    /// jmp rel32 that can be changed by one store: opcode and displacement are the last five bytes of an aligned eight.
    /// Returns the displacement's address.
    pub fn jump_linkable(&mut self) -> CachePc {
        self.align_by_prefixes(8, 5);
        self.bytes(&[0xe9]);
        let place = self.address();
        self.dword(0);
        place
    }

    /// call rel32 that can be changed by one store: the last five bytes of an aligned eight. Returns the displacement's
    /// address.
    pub fn call_linkable(&mut self) -> CachePc {
        self.align_by_prefixes(8, 5);
        self.call()
    }

    /// jcc rel32 that can be changed by one store: the last six bytes of an aligned eight. Returns the displacement's
    /// address.
    pub fn jump_condition_linkable(&mut self, condition: u8) -> CachePc {
        self.align(8, 6);
        self.jump_condition(condition)
    }

    /// jcc rel32 forward; returns the displacement's address for `bind`.
    pub fn jump_condition(&mut self, condition: u8) -> CachePc {
        self.bytes(&[0x0f, 0x80 | condition]);
        let place = self.address();
        self.dword(0);
        place
    }

    /// jmp rel32; returns the displacement's address for `bind`.
    pub fn jump(&mut self) -> CachePc {
        self.bytes(&[0xe9]);
        let place = self.address();
        self.dword(0);
        place
    }

    /// jmp rel32 to `target`, which must be within 2 GiB.
    pub fn jump_to(&mut self, target: CachePc) {
        let place = self.jump();
        self.patch(place, &((place + 4).distance_to(target) as u32).to_le_bytes());
    }

    /// A jump to `target`, however far it is.
    pub fn jump_anywhere(&mut self, target: CachePc) {
        let distance = (self.address() + 5).distance_to(target);
        if distance == i64::from(distance as i32) {
            self.jump_to(target);
        } else {
            // jmp [rip + padding]; the address, aligned: the program may have alignment checks on.
            self.bytes(&[0xff, 0x25]);
            let behind = (self.address() + 4).raw();
            let padding = behind.next_multiple_of(8) - behind;
            self.dword(padding as u32);
            self.bytes(&[0xcc; 7][..padding as usize]);
            self.qword(target.raw());
        }
    }

    /// call rel32; returns the displacement's address for `bind`.
    pub fn call(&mut self) -> CachePc {
        self.bytes(&[0xe8]);
        let place = self.address();
        self.dword(0);
        place
    }

    /// jmp rel8; returns the displacement's address for `bind_short`.
    pub fn jump_short(&mut self) -> CachePc {
        self.bytes(&[0xeb]);
        let place = self.address();
        self.bytes(&[0]);
        place
    }

    /// jrcxz rel8; returns the displacement's address for `bind_short`.
    pub fn jump_rcx_zero(&mut self) -> CachePc {
        self.bytes(&[0xe3]);
        let place = self.address();
        self.bytes(&[0]);
        place
    }

    /// jecxz rel8; returns the displacement's address for `bind_short`.
    pub fn jump_ecx_zero(&mut self) -> CachePc {
        self.bytes(&[0x67, 0xe3]);
        let place = self.address();
        self.bytes(&[0]);
        place
    }

    /// loop rel8: rcx -= 1, and a jump unless it is zero then; returns the displacement's address for `bind_short`.
    pub fn jump_loop(&mut self) -> CachePc {
        self.bytes(&[0xe2]);
        let place = self.address();
        self.bytes(&[0]);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Code, Decoder, DecoderOptions};

    #[test]
    fn far_jumps_read_an_aligned_address() {
        const TARGET: u64 = 0x7fff_1234_5678;
        for lead in 0..8 {
            let mut buffer = [0u8; 64];
            let mut emitter = Emitter::new(&mut buffer, 0x1000, &mut [], 0);
            emitter.nops(lead);
            emitter.jump_anywhere(CachePc::from_raw(TARGET));
            let end = emitter.position();
            let jump = Decoder::with_ip(64, &buffer[lead..end], 0x1000 + lead as u64, DecoderOptions::NONE).decode();
            let place = jump.ip_rel_memory_address() as usize;
            assert_eq!((jump.code(), place % 8, place + 8), (Code::Jmp_rm64, 0, 0x1000 + end));
            assert_eq!(buffer[place - 0x1000..end], TARGET.to_le_bytes());
        }
    }

    #[test]
    fn linkable_jumps_end_aligned_words() {
        for lead in 0..8 {
            let mut buffer = [0u8; 64];
            let mut emitter = Emitter::new(&mut buffer, 0x1003, &mut [], 0);
            emitter.nops(lead);
            let place = emitter.jump_linkable();
            assert_eq!((place + 4).raw() % 8, 0);
        }
    }
}
