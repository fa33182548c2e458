//! The way out of a fragment: its last instruction, with what counts it and what it may be linked to.

use crate::cache::exit::{Entry, ExitType};
use crate::context::addresses::{AppPc, CachePc};
use crate::context::layout::branch_table_offset;
use crate::context::layout::{SITE_OVERFLOW, SITE_RETURN};
use crate::context::numbers::{CounterId, ExitId, SiteId};
use crate::cpu::decode::float_state::stored_pointer;
use crate::cpu::decode::scratch;
use crate::cpu::displacements::{
    GS_EXIT_ID, GS_GATE_INDIRECT, GS_GATE_SYSCALL, GS_SITE, GS_SPILL_INDEX, GS_SPILL_R11, GS_SPILL_RCX, GS_SPILL_TARGET,
};
use crate::cpu::emit::Emitter;
use crate::cpu::instrument::verification::{emit_other_way, emit_question};
use crate::cpu::spill::SpillState;
use crate::cpu::{INDEX, R11, RAX, RCX, RSP, TARGET};
use crate::decode::{Block, Ending};
use crate::instrument::exits::ExitList;
use crate::instrument::instruction_map::MapBuilder;
use crate::instrument::output::{IndirectWay, Output};
use crate::instrument::plan::Plan;
use crate::instrument::Engine;

/// mov [rsp - 8], r11
const SHOW_RETURN_ADDRESS: &[u8] = &[0x4c, 0x89, 0x5c, 0x24, 0xf8];

/// Emits the way out of a fragment.
pub struct Terminator<'a, 'b> {
    pub engine: &'a mut Engine,
    pub block: &'a Block,
    pub plan: &'a Plan,
    pub emitter: &'a mut Emitter<'b>,
    pub exits: &'a mut ExitList,
    pub map: &'a mut MapBuilder,
    pub indirect: IndirectWay,
    /// A short branch did not reach: the fragment is not to be used.
    pub is_broken: bool,
}

impl<'a, 'b> Terminator<'a, 'b> {
    pub fn new(
        engine: &'a mut Engine,
        block: &'a Block,
        plan: &'a Plan,
        out: &'a mut Output<'_, 'b>,
    ) -> Terminator<'a, 'b> {
        let Output { emitter, exits, map } = out;
        let indirect = IndirectWay { interrupt_at: None, site: SiteId::NONE, first_try: ExitId::NONE };
        Terminator { engine, block, plan, emitter, exits, map, indirect, is_broken: false }
    }
}

impl Terminator<'_, '_> {
    fn last_pc_offset(&self) -> u64 {
        self.block.last_pc() - self.block.pc
    }

    pub fn emit(&mut self, ending: Ending) {
        let next = self.block.end();
        match ending {
            Ending::Limit => {
                let stores_pointer = self.block.instructions.last().is_some_and(|last| stored_pointer(last).is_some());
                let kind = if stores_pointer { ExitType::FloatState } else { ExitType::FallThrough };
                self.exits.emit_continuation(self.emitter, kind, next, self.plan.counters.main);
            }
            Ending::Jump(target) => self.exits.emit_jump(self.emitter, ExitType::Jump, target, self.plan.counters.main),
            Ending::Conditional(target) => self.conditional(target, next),
            Ending::Call(target) => self.call(target, next),
            Ending::IndirectCall => self.indirect_call(next),
            Ending::IndirectJump => self.indirect_jump(),
            // A pair would lead straight into the caller.
            Ending::Return(0) if !self.plan.facts.request.is_once() && !self.strays() => self.paired_return(),
            Ending::Return(drop) => self.jumping_return(drop),
            Ending::Syscall => self.syscall(next),
            Ending::TransactionBegin(target) if self.engine.features.has_transactions => {
                // A transaction may always abort: eax = 0 says nothing about why (Intel SDM, XBEGIN).
                self.emitter.load_immediate(RAX, 0);
                self.exits.emit_jump(self.emitter, ExitType::Jump, target, self.plan.counters.main);
            }
            Ending::TransactionBegin(_) | Ending::Fault => {}
            Ending::Native => {
                self.exits.emit_continuation(self.emitter, ExitType::Native, next, self.plan.counters.main)
            }
            Ending::NativeBranch(_) => self.leave_in_front(ExitType::NativeBranch, self.last_pc_offset()),
            Ending::Unsupported => self.release(self.last_pc_offset()),
        }
    }

    /// The thread goes on natively at the instruction.
    pub fn release(&mut self, app_offset: u64) {
        self.leave_in_front(ExitType::Release, app_offset);
    }

    fn leave_in_front(&mut self, kind: ExitType, app_offset: u64) {
        let id = self.exits.add_stub_only(kind, self.block.pc + app_offset);
        ExitList::emit_stub_jump(self.emitter, id);
    }

    /// Where a paired return comes back to. r11 holds the return address that was looked up.
    fn landing(&mut self, return_pc: AppPc) {
        let question = self.engine.features.question;
        let miss = emit_question(self.emitter, question, return_pc, None);
        let elsewhere = self.engine.cache.keeps_shadow.then(|| self.emitter.pop_shadow(question));
        self.emitter.copy_register(RCX, INDEX);
        // The application sees the return address below its stack pointer, as after a real return.
        self.emitter.bytes(SHOW_RETURN_ADDRESS);
        let entry = self.exits.entry;
        if self.plan.facts.is_hot() && scratch::lends_at(&self.engine.ranges, return_pc) {
            self.exits.entry = Entry::Lending;
        } else {
            self.exits.entry = Entry::Plain;
            self.emitter.take_back_lent();
        }
        self.exits.emit_jump(self.emitter, ExitType::Landing, return_pc, CounterId::NONE);
        if let Some(elsewhere) = elsewhere {
            self.is_broken |= !self.emitter.bind_short(elsewhere);
            self.emitter.copy_register(RCX, INDEX);
            self.emitter.bytes(SHOW_RETURN_ADDRESS);
            self.exits.entry = Entry::Lending;
            self.exits.emit_jump(self.emitter, ExitType::Elsewhere, return_pc, CounterId::NONE);
        }
        self.exits.entry = entry;
        if let Some(miss) = miss {
            self.is_broken |= !self.emitter.bind_short(miss);
            emit_other_way(self.emitter, None);
        }
    }

    /// After the processor's call: the return slot gets the application's return address.
    fn fix_return_slot(&mut self, return_pc: AppPc) -> Option<CachePc> {
        let address = return_pc.raw();
        if address as i64 == address as i32 as i64 {
            self.emitter.bytes(&[0x48, 0xc7, 0x04, 0x24]); // mov qword [rsp], imm32
            self.emitter.dword(address as u32);
            return None;
        }
        self.emitter.bytes(&[0x48, 0x8d, 0x64, 0x24, 0x08]); // lea rsp, [rsp + 8]
        Some(self.emitter.push_literal())
    }

    fn call(&mut self, target: AppPc, next: AppPc) {
        let offset = self.last_pc_offset();
        if self.plan.is_lending {
            // What is called fills the return slot.
            self.emitter.load_address(TARGET, next.raw());
            self.exits.emit_call(self.emitter, target, self.plan.counters.main);
            self.map.mark(self.emitter.position(), offset, SpillState::Landing);
            self.landing(next);
            return;
        }
        let to_body = self.emitter.call();
        self.map.mark(self.emitter.position(), offset, SpillState::Landing);
        self.landing(next);
        self.emitter.bind(to_body);
        self.map.mark(self.emitter.position(), offset, SpillState::Pushed);
        let literal = self.fix_return_slot(next);
        if self.engine.cache.keeps_shadow {
            self.emitter.lend();
            self.emitter.load_address(TARGET, next.raw());
            self.emitter.push_shadow();
            self.emitter.take_back_lent();
        }
        self.exits.emit_jump(self.emitter, ExitType::Call, target, self.plan.counters.main);
        if let Some(place) = literal {
            self.emitter.literal(place, next.raw());
        }
    }

    /// The start of an indirect exit: aligned so that it can be interrupted by one store, which no instruction but the first
    /// may notice.
    fn begin_indirect(&mut self) {
        self.emitter.align(8, 0);
        self.indirect.interrupt_at = Some(self.emitter.position());
        if self.plan.is_lending {
            self.emitter.nops(8);
            return;
        }
        self.emitter.store_gs(GS_SPILL_TARGET, TARGET);
        self.map.mark(self.emitter.position(), self.last_pc_offset(), SpillState::Target);
    }

    /// r11 has the target: r10 goes to its slot as well.
    fn spill_index(&mut self) {
        if !self.plan.is_lending {
            self.emitter.store_gs(GS_SPILL_INDEX, INDEX);
            self.map.mark(self.emitter.position(), self.last_pc_offset(), SpillState::Both);
        }
    }

    /// Emits r11 = target; `false` if the operand can't be had: the thread is released there.
    fn load_target(&mut self) -> bool {
        let index = self.block.instructions.len() - 1;
        let branch = self.block.instructions[index];
        let is_loaded = match self.engine.mangler.as_mut() {
            Some(mangler) => mangler.emit_target(self.emitter, &branch).is_ok(),
            None => false,
        };
        if !is_loaded {
            self.indirect.interrupt_at = None;
            self.release(self.last_pc_offset());
        }
        is_loaded
    }

    /// A number for this site, so that no two sites share a place in the branch table for one target. `None`: it has none, and
    /// leads to the dispatcher each time.
    fn take_site(&mut self) -> Option<SiteId> {
        // Eight sites together, so that their entries for one target lie in one line of the data cache. 24,571 is prime: the
        // multiples of a number modulo it are all different. The first group's first number is for returns.
        const GROUP: u64 = 8;
        const GROUPS: u64 = 24_571;
        const STEP: u64 = 331;
        let n = self.engine.cache.n_sites + 1;
        if self.plan.facts.request.is_once() || u64::from(n) >= GROUP * (GROUPS - 1) {
            return None;
        }
        self.engine.cache.n_sites = n;
        let (group, member) = (u64::from(n) / GROUP + 1, u64::from(n) % GROUP);
        Some(SiteId::from_raw((group * STEP % GROUPS * GROUP + member) as u32))
    }

    /// Emits the jump through the branch table; r11 holds the target, r10 and r11 are in their slots.
    fn jump_through_table(&mut self, site: Option<SiteId>) {
        match site {
            Some(site) => {
                self.indirect.site = site;
                self.indirect.first_try = self.exits.emit_first_try(self.emitter);
                self.emitter.store_gs_immediate(GS_SITE, site.raw());
                self.emitter.index_from_target();
                self.emitter.jump_gs_table(branch_table_offset(site));
            }
            None => {
                self.name_exit_for_gate();
                self.emitter.jump_gs(GS_GATE_INDIRECT);
            }
        }
    }

    /// The sites are used up, or this is for one execution: each goes through the dispatcher, which finds the fragment by the exit.
    fn name_exit_for_gate(&mut self) {
        self.emitter.store_gs_immediate(GS_EXIT_ID, self.exits.next_id().raw());
        self.emitter.store_gs_immediate(GS_SITE, SITE_OVERFLOW);
    }

    fn indirect_jump(&mut self) {
        let offset = self.last_pc_offset();
        self.begin_indirect();
        if !self.load_target() {
            return;
        }
        self.spill_index();
        let site = self.take_site();
        self.jump_through_table(site);
        self.exits.add_stub_only(ExitType::Interrupted, self.block.pc + offset);
    }

    fn indirect_call(&mut self, next: AppPc) {
        let offset = self.last_pc_offset();
        self.begin_indirect();
        if !self.load_target() {
            return;
        }
        self.spill_index();
        let to_body = self.emitter.call();
        self.map.mark(self.emitter.position(), offset, SpillState::Landing);
        self.landing(next);
        self.emitter.bind(to_body);
        self.map.mark(self.emitter.position(), offset, SpillState::BothPushed);
        // The index is not needed yet.
        self.emitter.load_address(INDEX, next.raw());
        self.emitter.fill_return_slot(INDEX);
        if self.engine.cache.keeps_shadow {
            let pushed = self.emitter.push_shadow_beside_target();
            self.map.mark(pushed, offset, SpillState::BothCalled);
        }
        let site = self.take_site();
        self.jump_through_table(site);
        self.exits.add_stub_only(ExitType::Interrupted, self.block.pc + offset);
    }

    /// A return through the processor's predictor: the return slot gets the landing's cache address for an instant.
    fn paired_return(&mut self) {
        let offset = self.last_pc_offset();
        if self.plan.is_lending {
            // The store is long enough to be interrupted itself.
            self.emitter.align(8, 0);
            self.indirect.interrupt_at = Some(self.emitter.position());
            self.emitter.store_gs_immediate(GS_SITE, SITE_RETURN | self.plan.facts.id.raw());
            self.emitter.load_target_from_stack();
        } else {
            self.begin_indirect();
            self.emitter.load_target_from_stack();
            self.spill_index();
        }
        self.emitter.index_from_target();
        self.emitter.load_index_gs_table(branch_table_offset(SiteId::RETURNS));
        if !self.plan.is_lending {
            self.emitter.store_gs_immediate(GS_SITE, SITE_RETURN | self.plan.facts.id.raw());
        }
        self.emitter.fill_return_slot(INDEX);
        self.map.mark(self.emitter.position(), offset, SpillState::BothReturning);
        self.emitter.bytes(&[0xc3]);
        self.exits.add_stub_only(ExitType::Interrupted, self.block.pc + offset);
    }

    fn strays(&self) -> bool {
        self.engine.strays(self.block.pc + self.last_pc_offset())
    }

    /// A return that goes the way of an indirect jump: `ret n`, as the place of the return slot is lost after it, and what often
    /// leads elsewhere than its call.
    fn jumping_return(&mut self, drop: u16) {
        let offset = self.last_pc_offset();
        self.begin_indirect();
        self.emitter.load_target_from_stack();
        self.spill_index();
        let site = self.take_site();
        match site {
            Some(site) => {
                self.indirect.site = site;
                self.emitter.store_gs_immediate(GS_SITE, site.raw());
                self.emitter.index_from_target();
            }
            None => self.name_exit_for_gate(),
        }
        self.emitter.add_registers(RSP, RSP, None, 1, 8 + i32::from(drop));
        self.map.mark(self.emitter.position(), offset, SpillState::Dropped);
        match site {
            Some(site) => self.emitter.jump_gs_table(branch_table_offset(site)),
            None => self.emitter.jump_gs(GS_GATE_INDIRECT),
        }
        self.exits.add_stub_only(ExitType::Interrupted, self.block.pc + offset);
    }

    fn syscall(&mut self, next: AppPc) {
        self.emitter.store_gs(GS_SPILL_RCX, RCX);
        self.emitter.store_gs(GS_SPILL_R11, R11);
        self.emitter.store_gs_immediate(GS_EXIT_ID, self.exits.next_id().raw());
        self.emitter.bytes(&[0x48, 0x8d, 0x0d]); // lea rcx, [rip + resume]
        let resume = self.emitter.address();
        self.emitter.dword(0);
        self.emitter.jump_gs(GS_GATE_SYSCALL);
        self.emitter.bind(resume);
        // The instruction leaves the next address in rcx (Intel SDM, SYSCALL).
        let literal = self.emitter.load_literal(RCX);
        self.exits.emit_jump(self.emitter, ExitType::Syscall, next, self.plan.counters.main);
        self.emitter.literal(literal, next.raw());
    }
}
