//! The way out of a fragment: its last instruction, with what counts it and what it may be linked to.

use super::counting::emit_count;
use crate::cache::exit::ExitType;
use crate::context::addresses::AppPc;
use crate::context::numbers::{CounterId, ExitId, SiteId};
use crate::cpu::code;
use crate::cpu::decode::block::Block;
use crate::cpu::emit::Emitter;
use crate::decode::Ending;
use crate::instrument::branch_way::BranchWay;
use crate::instrument::exits::ExitList;
use crate::instrument::output::{IndirectWay, Output};
use crate::instrument::plan::Plan;
use crate::instrument::Engine;

/// Emits the way out of a fragment.
pub struct Terminator<'a, 'b> {
    block: &'a Block,
    plan: &'a Plan,
    emitter: &'a mut Emitter<'b>,
    exits: &'a mut ExitList,
    pub indirect: IndirectWay,
    pub is_broken: bool,
}

impl<'a, 'b> Terminator<'a, 'b> {
    pub fn new(_: &'a mut Engine, block: &'a Block, plan: &'a Plan, out: &'a mut Output<'_, 'b>) -> Terminator<'a, 'b> {
        let Output { emitter, exits, .. } = out;
        let indirect = IndirectWay { interrupt_at: None, site: SiteId::NONE, first_try: ExitId::NONE };
        Terminator { block, plan, emitter, exits, indirect, is_broken: false }
    }

    pub fn emit(&mut self, ending: Ending) {
        let (next, counter) = (self.block.end(), self.plan.counters.main);
        match ending {
            Ending::Limit => self.exits.emit_continuation(self.emitter, ExitType::FallThrough, next, counter),
            Ending::Jump(target) => self.exits.emit_jump(self.emitter, ExitType::Jump, target, counter),
            Ending::Conditional(target) => self.conditional(target, next),
            Ending::Call(target) => {
                self.push(next);
                self.exits.emit_call(self.emitter, target, counter);
            }
            Ending::IndirectCall => {
                self.push(next);
                self.leave_there(1);
            }
            Ending::IndirectJump => self.leave_there(1),
            Ending::Return(_) => self.leave_there(0),
            Ending::Syscall => {
                self.emitter.word(code::SYSTEM_CALL, 0);
                self.exits.emit_continuation(self.emitter, ExitType::Syscall, next, counter);
            }
            Ending::Fault | Ending::TransactionBegin(_) => {}
            Ending::Native | Ending::NativeBranch(_) | Ending::Unsupported => {
                self.release(self.block.last_pc() - self.block.pc);
            }
        }
    }

    /// The thread goes on natively at the instruction.
    pub fn release(&mut self, app_offset: u64) {
        let id = self.exits.add_stub_only(ExitType::Release, self.block.pc + app_offset);
        self.emitter.leave_by(id);
    }

    fn push(&mut self, return_pc: AppPc) {
        self.emitter.word(code::PUSH, 0);
        self.emitter.qword(return_pc.raw());
    }

    fn leave_there(&mut self, from_accumulator: i64) {
        self.emitter.word(code::TAKE, from_accumulator);
        self.emitter.word(code::LEAVE_THERE, 0);
    }

    /// Both ways, by the branch itself where nothing is to be done on one of them.
    fn conditional(&mut self, target: AppPc, next: AppPc) {
        let plan = self.plan;
        let kind = |way| if way == BranchWay::Taken { ExitType::Taken } else { ExitType::NotTaken };
        let place = |way| if way == BranchWay::Taken { target } else { next };
        let condition = |way| if way == BranchWay::Taken { code::JUMP_IF } else { code::JUMP_UNLESS };
        if let Some(way) = plan.branch.linked_way(&plan.counters) {
            self.exits.emit_condition(self.emitter, condition(way), kind(way), place(way));
            self.edge(kind(!way), place(!way), plan.branch.counter(&plan.counters, !way));
            return;
        }
        let straight = plan.branch.straight.unwrap_or(BranchWay::NotTaken);
        let aside = self.emitter.word(condition(!straight), 0);
        self.edge(kind(straight), place(straight), plan.branch.counter(&plan.counters, straight));
        self.emitter.set_cold(true);
        self.emitter.bind(aside);
        self.edge(kind(!straight), place(!straight), plan.branch.counter(&plan.counters, !straight));
        self.emitter.set_cold(false);
    }

    fn edge(&mut self, kind: ExitType, target: AppPc, counter: CounterId) {
        emit_count(self.emitter, counter, true, false);
        self.exits.emit_jump(self.emitter, kind, target, counter);
    }
}
