//! Ways out of fragments: linkable jumps with their stubs.

use crate::cache::exit::{Entry, Exit, ExitType, PadId};
use crate::context::addresses::{AppPc, CachePc};
use crate::context::layout::heat_offset;
use crate::context::numbers::{CounterId, ExitId, FragmentId};
use crate::cpu::emit::{Emitter, ZERO};

/// Exits of a fragment or pad under construction: at most ten (code that may be written, a call through a register, with two
/// ways back of it, the question of mode `region`, captures, room).
pub struct ExitList {
    /// Number that the first one will have.
    first: ExitId,
    /// How jumps leave from now on.
    pub entry: Entry,
    /// Calls push onto the shadow stack.
    keeps_shadow: bool,
    exits: [Exit; 10],
    length: usize,
}

pub const BLANK: Exit = Exit {
    target: AppPc::NOWHERE,
    patch: CachePc::NOWHERE,
    stub: CachePc::NOWHERE,
    fragment: FragmentId::NONE,
    linked_to: FragmentId::NONE,
    next_incoming: ExitId::NONE,
    kind: ExitType::Jump,
    is_inside: false,
    is_surprise: false,
    skips_question: false,
    entry: Entry::Plain,
    misses: CounterId::NONE,
    follower: FragmentId::NONE,
    pad: PadId::NONE,
    counter: CounterId::NONE,
    far_jump: CachePc::NOWHERE,
    far_target: CachePc::NOWHERE,
    far_fragment: FragmentId::NONE,
};

impl ExitList {
    pub fn new(first: ExitId, keeps_shadow: bool) -> ExitList {
        ExitList { first, entry: Entry::Plain, keeps_shadow, exits: [BLANK; 10], length: 0 }
    }

    /// The number of the first one.
    pub fn first(&self) -> ExitId {
        self.first
    }

    pub fn as_slice(&self) -> &[Exit] {
        &self.exits[..self.length]
    }

    pub fn as_mut_slice(&mut self) -> &mut [Exit] {
        &mut self.exits[..self.length]
    }

    /// Emits a linkable jump to `target`. It leads nowhere until `emit_stubs`.
    pub fn emit_jump(&mut self, emitter: &mut Emitter, kind: ExitType, target: AppPc, counter: CounterId) {
        let patch = emitter.jump_linkable();
        self.add(Exit { target, patch, kind, counter, ..BLANK });
    }

    /// The jump emitted last is a surprise for the thread's path.
    pub fn mark_surprise(&mut self) {
        self.exits[self.length - 1].is_surprise = true;
    }

    /// As `emit_jump`, to what is no block of its own for those who tag blocks.
    pub fn emit_continuation(&mut self, emitter: &mut Emitter, kind: ExitType, target: AppPc, counter: CounterId) {
        self.emit_jump(emitter, kind, target, counter);
        self.exits[self.length - 1].skips_question = true;
    }

    /// Emits a linkable call of `target`; the return address is where the processor wants it.
    pub fn emit_call(&mut self, emitter: &mut Emitter, target: AppPc, counter: CounterId) {
        let patch = emitter.call_linkable();
        self.add(Exit { target, patch, kind: ExitType::Call, counter, ..BLANK });
        self.exits[self.length - 1].entry = Entry::Call;
    }

    /// Emits a linkable conditional branch to `target`.
    pub fn emit_condition(&mut self, emitter: &mut Emitter, condition: u8, kind: ExitType, target: AppPc) {
        let patch = emitter.jump_condition_linkable(condition);
        self.add(Exit { target, patch, kind, ..BLANK });
    }

    /// Emits the place of a jump that leads straight on until it is made to lead to a pad. Returns the exit's number.
    pub fn emit_first_try(&mut self, emitter: &mut Emitter) -> ExitId {
        let patch = emitter.jump_linkable();
        emitter.skip_jump(patch);
        self.add(Exit { patch, stub: emitter.address(), kind: ExitType::FirstTry, ..BLANK });
        self.first.plus(self.length as u32 - 1)
    }

    /// Emits what counts how often the fragment runs, and leaves in front of `pc` when it is hot. Changes flags.
    pub fn emit_heat(&mut self, emitter: &mut Emitter, fragment: FragmentId, pc: AppPc) {
        emitter.count_heat(heat_offset(fragment));
        self.emit_condition(emitter, ZERO, ExitType::Relayout, pc);
    }

    /// Adds an exit without a jump of its own: it is entered at its stub only. Returns its number.
    pub fn add_stub_only(&mut self, kind: ExitType, target: AppPc) -> ExitId {
        self.add(Exit { target, kind, ..BLANK });
        self.first.plus(self.length as u32 - 1)
    }

    /// What leads to the exit added last has counted with this counter.
    pub fn count_with(&mut self, counter: CounterId) {
        self.exits[self.length - 1].counter = counter;
    }

    /// The number that the next exit will have.
    pub fn next_id(&self) -> ExitId {
        self.first.plus(self.length as u32)
    }

    fn add(&mut self, exit: Exit) {
        self.exits[self.length] = Exit { entry: self.entry, ..exit };
        self.length += 1;
    }

    /// Emits what a stub does, in place.
    pub fn emit_stub_jump(emitter: &mut Emitter, id: ExitId) {
        emitter.leave_by(id);
    }

    /// Emits the stubs right here, each after what `before` emits for its exit.
    pub fn emit_stubs_here(&mut self, emitter: &mut Emitter, before: impl Fn(&mut Emitter, &Exit)) {
        for index in 0..self.length {
            let exit = &mut self.exits[index];
            if exit.patch != CachePc::NOWHERE {
                exit.stub = emitter.address();
                emitter.bind(exit.patch);
                before(emitter, exit);
                Self::emit_stub_jump(emitter, self.first.plus(index as u32));
            }
        }
    }

    /// Emits the stubs into the cold section and makes each jump lead to its own.
    pub fn emit_stubs(&mut self, emitter: &mut Emitter) {
        emitter.set_cold(true);
        for index in 0..self.length {
            let exit = &mut self.exits[index];
            if exit.kind == ExitType::FirstTry {
                continue;
            }
            exit.stub = emitter.address();
            if exit.patch != CachePc::NOWHERE {
                emitter.bind(exit.patch);
            }
            if exit.entry == Entry::Call {
                emitter.enter_by_call(self.keeps_shadow);
            }
            if exit.entry != Entry::Plain {
                emitter.take_back_lent();
            }
            Self::emit_stub_jump(emitter, self.first.plus(index as u32));
        }
        emitter.set_cold(false);
    }
}
