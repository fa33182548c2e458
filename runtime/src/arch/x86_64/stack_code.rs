//! Instructions on the program's stack, and calls from it.

use super::emit::Emitter;
use super::Gpr;

impl Emitter<'_> {
    /// lea rsp, [rsp + distance]: no flag changes
    pub fn move_stack(&mut self, distance: i32) {
        self.bytes(&[0x48, 0x8d, 0xa4, 0x24]);
        self.dword(distance as u32);
    }

    /// mov [rsp + offset], register, of the first eight
    pub fn store_on_stack(&mut self, offset: u8, register: Gpr) {
        self.bytes(&[0x48, 0x89, 0x44 | register.0 << 3, 0x24, offset]);
    }

    /// mov register, [rsp + offset]
    pub fn load_from_stack(&mut self, register: Gpr, offset: u8) {
        self.bytes(&[0x48, 0x8b, 0x44 | register.0 << 3, 0x24, offset]);
    }

    /// call [rip + literal], over that: wherever it leads
    pub fn call_far(&mut self, target: u64) {
        // The address lies in front of the call, aligned: the program may have alignment checks on. jmp over it.
        self.align(8, 2);
        self.bytes(&[0xeb, 8]);
        self.qword(target);
        // call qword [rip - 14]
        self.bytes(&[0xff, 0x15]);
        self.dword(-14i32 as u32);
    }
}
