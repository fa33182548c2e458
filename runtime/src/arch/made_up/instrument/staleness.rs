//! Is the program's code as it was?

use crate::context::numbers::ExitId;
use crate::cpu::code;
use crate::cpu::decode::block::Block;
use crate::cpu::emit::Emitter;
use crate::instrument::kinds::hash;

/// Emits the comparison, which leaves by the exit `stale` where it fails. Returns the position of what reads the code.
pub fn emit_check(emitter: &mut Emitter, block: &Block, stale: ExitId, hot: Option<(u32, ExitId)>) -> usize {
    let position = emitter.position();
    emitter.word(code::COMPARE, i64::from(stale.raw()));
    for word in [block.pc.raw(), block.size_bytes(), hash(&block.code)] {
        emitter.qword(word);
    }
    if let Some((displacement, exit)) = hot {
        emitter.count_heat(displacement);
        emitter.word(code::JUMP_HOT, 2);
        let behind = emitter.jump();
        emitter.leave_by(exit);
        emitter.bind(behind);
    }
    position
}
