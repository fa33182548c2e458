//! What the kernel leaves in a thread's context where it aborts a restartable sequence.

use super::displacements::SURPRISES_END_OFFSET;
use crate::context::numbers::CounterId;
use crate::context::ThreadContext;
use crate::protocol;
use clew_pathcodec::surprises::MAX_BYTES;

/// `rseq.state`: the rest is the number of an exit; and the path is written as well, from `rseq.path` on.
pub const RSEQ_LEAVING: u32 = 0x8000_0000;
pub const RSEQ_WRITES_PATH: u32 = 0x4000_0000;
/// `rseq.undo`: rcx and rax are in their slots; r10 is; r11 is.
pub const UNDO_RCX_RAX: u32 = 1;
pub const UNDO_INDEX: u32 = 2;
pub const UNDO_TARGET: u32 = 4;
/// `rseq.undo`: in these bits, the number of the register in the address slot, and of the other one, plus one.
pub const UNDO_ADDRESS_SHIFT: u32 = 8;
pub const UNDO_OTHER_SHIFT: u32 = 16;

impl ThreadContext {
    /// Takes back what the kernel aborted a critical section in: the registers out of their slots, and what the path was told of the
    /// fragment that was left.
    pub fn undo_rseq(&mut self) {
        if self.rseq.state & RSEQ_WRITES_PATH != 0 {
            for (cell, value) in
                [protocol::PATH_DECISIONS_CELL, protocol::PATH_OTHER_DECISIONS_CELL, protocol::PATH_SURPRISES_CELL]
                    .into_iter()
                    .zip(self.rseq.path)
            {
                // SAFETY: the cells are the first counters of the thread's mapped window, which only this thread writes.
                unsafe { self.counter(CounterId::of_cell(cell)).write_volatile(value) };
            }
            let behind = self.self_address.wrapping_add(SURPRISES_END_OFFSET).wrapping_add(self.rseq.path[2]);
            // SAFETY: the offset was the buffer's, behind which there is room for more than one number. None may be there.
            unsafe { core::ptr::write_bytes(behind as *mut u8, 0, MAX_BYTES) };
        }
        let undo = core::mem::take(&mut self.rseq.undo);
        if undo & UNDO_RCX_RAX != 0 {
            self.registers.general[1] = self.gate.spill_rcx;
            self.registers.general[0] = self.gate.spill_rax;
        }
        if undo & UNDO_INDEX != 0 {
            self.registers.general[10] = self.gate.spill_index;
        }
        if undo & UNDO_TARGET != 0 {
            self.registers.general[11] = self.gate.spill_target;
        }
        for (shift, value) in [(UNDO_OTHER_SHIFT, self.gate.spill_other), (UNDO_ADDRESS_SHIFT, self.gate.spill_address)]
        {
            let number = undo >> shift & 0xff;
            if number != 0 {
                self.registers.general[(number - 1) as usize & 15] = value;
            }
        }
    }
}
