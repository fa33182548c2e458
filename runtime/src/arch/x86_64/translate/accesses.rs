//! Accesses to memory, told as rows (mode `full`): what an instruction reads and writes, and the value.
//!
//! Most rows are written behind the instruction, so one that faults has none; its address is worked out in front of it where it
//! changes what that is made of. What leaves a block is told in front: a row of one that was not done after all is dropped by who
//! reads them (pathcodec/src/accesses.rs). r10 and r11 are in their slots meanwhile, no flags are touched, and all but the
//! program's own memory is aligned: it may have alignment checks on.
//!
//! Not told: gathers and scatters, bit tests with the bit's number in a register, xlat, and what the dispatcher executes.

use super::Mangler;
use crate::context::addresses::AppPc;
use crate::context::numbers::ExitId;
use crate::cpu::displacements::{gs_path_cell, ACCESSES_END_OFFSET, GS_APP_GS_BASE, GS_CAPTURE_VALUES, GS_SPILL_RCX};
use crate::cpu::emit::Emitter;
use crate::cpu::spill::SpillState;
use crate::cpu::{INDEX, RCX, TARGET};
use crate::decode::Block;
use crate::protocol::{MAX_FRAGMENT_INSTRUCTIONS, PATH_ACCESSES_CELL, PATH_ACCESSES_SLACK_BYTES};
use clew_pathcodec::protocol::{access_kind, AccessRow};
use core::mem::offset_of;
use iced_x86::{Code, FlowControl, Instruction, MemoryOperand, Mnemonic, OpAccess, OpKind, Register, UsedMemory};

/// No instruction is told of more often.
const MOST: usize = 5;
/// What is known in front of an instruction: addresses, and how often a string instruction is to go round.
const ADDRESSES: u32 = GS_CAPTURE_VALUES;
const TURNS: u32 = ADDRESSES + 8 * MOST as u32;
const REPEATED_BYTES: u32 = TURNS + 8;

const _: () =
    assert!(MAX_FRAGMENT_INSTRUCTIONS * MOST as u64 * size_of::<AccessRow>() as u64 <= PATH_ACCESSES_SLACK_BYTES);

const CURSOR: u64 = PATH_ACCESSES_CELL;

/// One access of an instruction.
#[derive(Clone, Copy)]
struct Access {
    memory: UsedMemory,
    kind: u8,
    /// Bytes; of a string instruction those of one turn.
    size: u32,
    is_repeated: bool,
    is_unread: bool,
    /// Its address is worked out in front of the instruction.
    is_early: bool,
}

#[derive(Default)]
struct List {
    all: [Option<Access>; MOST],
    n: usize,
}

impl List {
    fn iter(&self) -> impl Iterator<Item = (usize, &Access)> {
        self.all.iter().flatten().enumerate()
    }
}

/// Where a row's address and value come from.
enum Value {
    Loaded,
    Known(u64),
    Unknown,
}

fn displacement_of(field: usize) -> u32 {
    ACCESSES_END_OFFSET as u32 + field as u32
}

impl Emitter<'_> {
    /// mov gs:[r10 + displacement], r11
    fn store_in_row(&mut self, field: usize) {
        self.bytes(&[0x65, 0x4d, 0x89, 0x9a]);
        self.dword(displacement_of(field));
    }

    /// mov dword gs:[r10 + displacement], immediate
    fn store_immediate_in_row(&mut self, field: usize, immediate: u32) {
        self.bytes(&[0x65, 0x41, 0xc7, 0x82]);
        self.dword(displacement_of(field));
        self.dword(immediate);
    }

    fn store_word_in_row(&mut self, field: usize, immediate: u64) {
        self.store_immediate_in_row(field, immediate as u32);
        self.store_immediate_in_row(field + 4, (immediate >> 32) as u32);
    }

    /// r11 = as much of the memory at r11 as a row holds, where `size` bytes of it were accessed.
    fn load_accessed(&mut self, size: u32) {
        self.bytes(match size {
            0..2 => &[0x45, 0x0f, 0xb6, 0x1b][..],
            2..4 => &[0x45, 0x0f, 0xb7, 0x1b],
            4..8 => &[0x45, 0x8b, 0x1b],
            _ => &[0x4d, 0x8b, 0x1b],
        });
    }

    /// Emits the question whether there is room for the rows of one fragment, in front of it; `exit` leads into the dispatcher.
    /// No flags are touched.
    pub fn emit_room_question(&mut self, exit: ExitId) {
        self.store_gs(GS_SPILL_RCX, RCX);
        // The offset is negative as long as there is room: its upper half is -1.
        self.load_gs32(RCX, gs_path_cell(CURSOR) + 4);
        self.bytes(&[0x8d, 0x49, 1]); // lea ecx, [rcx + 1]
        let has_room = self.jump_ecx_zero();
        let full = self.jump();
        // A branch of this size reaches over the one behind it.
        self.bind_short(has_room);
        self.load_gs(RCX, GS_SPILL_RCX);
        self.set_cold(true);
        self.bind(full);
        self.load_gs(RCX, GS_SPILL_RCX);
        self.leave_by(exit);
        self.set_cold(false);
    }
}

impl Mangler {
    /// Whether anything of a block's accesses is told.
    pub fn has_accesses(&mut self, block: &Block) -> bool {
        block.instructions.iter().any(|one| self.list_accesses(one).n != 0)
    }

    /// Emits, in front of an instruction that is copied, what is not known behind it any more.
    pub fn tell_before(&mut self, emitter: &mut Emitter, block: &Block, index: usize) {
        let list = self.list_accesses(&block.instructions[index]);
        let is_repeated = list.iter().any(|(_, access)| access.is_repeated);
        if is_repeated {
            emitter.store_gs(TURNS, RCX);
        }
        for (number, access) in list.iter().filter(|(_, access)| access.is_early) {
            emitter.lend();
            self.emit_effective(emitter, access);
            emitter.store_gs(ADDRESSES + 8 * number as u32, TARGET);
            emitter.take_back_lent();
        }
    }

    /// Emits its rows, behind it.
    pub fn tell_behind(
        &mut self,
        emitter: &mut Emitter,
        block: &Block,
        index: usize,
        mark: &mut dyn FnMut(usize, SpillState),
    ) {
        let list = self.list_accesses(&block.instructions[index]);
        for (number, access) in list.iter() {
            if access.is_repeated {
                emit_repeated_bytes(emitter, access.size);
            }
            let value = if access.is_unread || access.size == 0 { Value::Unknown } else { Value::Loaded };
            let slot = access.is_early.then_some(number);
            self.emit_row(emitter, access, (block.pc_of(index), number != 0), slot, value, mark);
        }
    }

    /// Emits the rows of a block's last instruction, which leaves it, in front of it.
    pub fn tell_ahead(&mut self, emitter: &mut Emitter, block: &Block, mark: &mut dyn FnMut(usize, SpillState)) {
        let index = block.count() - 1;
        let instruction = &block.instructions[index];
        let is_call = matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
        let is_branch =
            is_call || matches!(instruction.flow_control(), FlowControl::IndirectBranch | FlowControl::Return);
        let list = if is_branch { self.list_accesses(instruction) } else { List::default() };
        for (number, access) in list.iter() {
            let is_push = is_call && access.kind == access_kind::WRITE;
            let value = if is_push { Value::Known(block.end().raw()) } else { Value::Loaded };
            self.emit_row(emitter, access, (block.pc_of(index), number != 0), None, value, mark);
        }
    }

    /// Emits one row; its address is in slot `early`, or is made of what registers hold now.
    fn emit_row(
        &mut self,
        emitter: &mut Emitter,
        access: &Access,
        (pc, is_further): (AppPc, bool),
        early: Option<usize>,
        value: Value,
        mark: &mut dyn FnMut(usize, SpillState),
    ) {
        emitter.lend();
        match early {
            Some(number) => emitter.load_gs(TARGET, ADDRESSES + 8 * number as u32),
            None => self.emit_effective(emitter, access),
        }
        emitter.load_gs(INDEX, gs_path_cell(CURSOR));
        emitter.store_in_row(offset_of!(AccessRow, address));
        match value {
            Value::Loaded => {
                mark(emitter.position(), SpillState::Both);
                emitter.load_accessed(access.size);
                emitter.store_in_row(offset_of!(AccessRow, value));
            }
            Value::Known(value) => emitter.store_word_in_row(offset_of!(AccessRow, value), value),
            Value::Unknown if access.is_repeated => {
                emitter.load_gs(TARGET, REPEATED_BYTES);
                emitter.store_in_row(offset_of!(AccessRow, value));
            }
            Value::Unknown => emitter.store_word_in_row(offset_of!(AccessRow, value), 0),
        }
        let what = AccessRow::pack(pc.raw(), access.size, access.kind, [is_further, access.is_repeated]);
        emitter.store_word_in_row(offset_of!(AccessRow, what), what);
        emitter.add_immediate(INDEX, size_of::<AccessRow>() as i32);
        emitter.store_gs(gs_path_cell(CURSOR), INDEX);
        emitter.take_back_lent();
        mark(emitter.position(), SpillState::None);
    }

    /// r11 = the address that is accessed; r10 is lost. Both are in their slots, and hold what the program has there.
    fn emit_effective(&mut self, emitter: &mut Emitter, access: &Access) {
        let memory = &access.memory;
        let (base, index) = (memory.base(), memory.index());
        // Of pop it counts from the stack pointer that it begins with.
        let displacement = memory.displacement();
        if base == Register::None && index == Register::None {
            emitter.load_immediate(TARGET, displacement);
        } else {
            let is_narrow = base.is_gpr32() || index.is_gpr32();
            let displacement = if is_narrow { i64::from(displacement as i32) } else { displacement as i64 };
            let size = match (displacement, is_narrow) {
                (0, _) if base != Register::None => 1,
                (_, true) => 4,
                (_, false) => 8,
            };
            let scale = memory.scale();
            let operand = MemoryOperand::new(base, index, scale, displacement, size, false, Register::None);
            // What it is made of was checked: it can be encoded.
            if let Ok(lea) = Instruction::with2(Code::Lea_r64_m, Register::R11, operand) {
                let _ = self.encode(emitter, &lea);
            }
        }
        match memory.segment() {
            Register::FS => emitter.bytes(&[0xf3, 0x49, 0x0f, 0xae, 0xc2]), // rdfsbase r10
            Register::GS => emitter.load_gs(INDEX, GS_APP_GS_BASE),
            _ => return,
        }
        emitter.add_registers(TARGET, TARGET, Some(INDEX), 1, 0);
    }

    /// What is told of an instruction's accesses.
    fn list_accesses(&mut self, instruction: &Instruction) -> List {
        let mut list = List::default();
        if !may_be_told(instruction) {
            return list;
        }
        let is_repeated = instruction.is_string_instruction()
            && (instruction.has_rep_prefix() || instruction.has_repe_prefix() || instruction.has_repne_prefix());
        let turn_bytes = instruction.memory_size().size() as u32;
        let is_masked = instruction.has_op_mask();
        let has_fs_base = self.has_fsgsbase;
        let info = self.info.info(instruction);
        let writes = |register: Register| {
            register != Register::None
                && info.used_registers().iter().any(|used| {
                    used.register().full_register() == register.full_register()
                        && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
                })
        };
        for memory in info.used_memory() {
            let (kind, is_sure) = match memory.access() {
                OpAccess::Read => (access_kind::READ, true),
                OpAccess::Write => (access_kind::WRITE, true),
                OpAccess::ReadWrite | OpAccess::ReadCondWrite => (access_kind::UPDATE, true),
                OpAccess::CondRead => (access_kind::READ, false),
                OpAccess::CondWrite => (access_kind::WRITE, false),
                _ => continue,
            };
            let is_plain = |register: Register| {
                register == Register::None || register.is_gpr64() || register.is_gpr32() && !is_repeated
            };
            let is_known = memory.segment() != Register::FS || has_fs_base;
            if !is_plain(memory.base()) || !is_plain(memory.index()) || !is_known || list.n == MOST {
                continue;
            }
            list.all[list.n] = Some(Access {
                memory: *memory,
                kind,
                size: if is_repeated { turn_bytes } else { memory.memory_size().size() as u32 },
                is_repeated,
                is_unread: is_repeated || is_masked || !is_sure,
                is_early: is_repeated || writes(memory.base()) || writes(memory.index()),
            });
            list.n += 1;
        }
        // What is read is read first.
        list.all[..list.n].sort_by_key(|access| access.map_or(0, |access| access.kind));
        list
    }
}

/// Whether what an instruction accesses follows from registers that hold numbers.
fn may_be_told(instruction: &Instruction) -> bool {
    match instruction.mnemonic() {
        Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc => instruction.op1_kind() != OpKind::Register,
        Mnemonic::Xlatb | Mnemonic::Enter => false,
        _ => true,
    }
}

/// Emits what a string instruction came to: turns that it did, by what is left of them in rcx, times the bytes of each.
fn emit_repeated_bytes(emitter: &mut Emitter, size: u32) {
    emitter.lend();
    emitter.copy_register(TARGET, RCX);
    emitter.bytes(&[0x49, 0xf7, 0xd3]); // not r11
    emitter.load_gs(INDEX, TURNS);
    // Before less after, without a flag.
    emitter.add_registers(TARGET, TARGET, Some(INDEX), 1, 1);
    for _ in 0..size.trailing_zeros() {
        emitter.add_registers(TARGET, TARGET, Some(TARGET), 1, 0);
    }
    emitter.store_gs(REPEATED_BYTES, TARGET);
    emitter.take_back_lent();
}
