//! Runs emitted captures on this machine's processor, in a private block of its own: for tests.

extern crate std;
use super::super::super::displacements::{GS_CAPTURE_LANDING, GS_CAPTURE_MISSING, GS_CAPTURE_TEXTS, GS_CAPTURE_VALUES};
use super::super::super::emit::Emitter;
use super::emit;
use crate::context::addresses::{AppPc, CachePc};
use crate::context::layout::{FRAME_OFFSET, OPEN_CALLS_OFFSET, STACK_BYTES, STACK_OFFSET};
use crate::context::numbers::ExitId;
use crate::context::ThreadContext;
use crate::cpu::sys::clock::ticks;
use crate::instrument::captures::form::{Form, Kind};
use crate::instrument::captures::open_calls::{ARMED, TICK_NS};
use crate::instrument::captures::places::{Captures, Outlets, Place};
use crate::protocol::{capture_operation as op, CapturePlace, ThreadSlot, CALL_WINDOW_BYTES};
use core::arch::global_asm;
use core::mem::{offset_of, size_of};
use core::sync::atomic::{AtomicU64, Ordering};
use std::boxed::Box;
use std::sync::{Arc, Mutex, OnceLock};
use std::vec::Vec;

const CODE_BYTES: usize = 0x2_0000;
/// Of the thread's ring, if it is given one (`Ring`).
pub const RING_BYTES: u32 = 0x1000;

/// What is where the stack pointer leads.
pub const RETURN_PC: u64 = 0x500;

/// What the processor holds: rax rcx rdx rbx rsp rbp rsi rdi r8 to r15, flags, the low halves of xmm0 to 3, the state of floating-point
/// operations, and whether the code was left by its exit.
#[repr(C)]
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    pub general: [u64; 16],
    pub flags: u64,
    pub vectors: [u64; 4],
    pub float_state: u32,
    pub has_left: u32,
}

impl Machine {
    pub fn sample() -> Machine {
        let general = core::array::from_fn(|n| 0x1122_3344_5566_7788u64.rotate_left(3 * n as u32));
        let vectors = [1.5f64, -2.25, 1e300, 7.0].map(f64::to_bits);
        // Flags CF PF AF SF OF are set, and so are bits of MXCSR: towards zero, and no exception is masked.
        Machine { general, flags: 0x897, vectors, float_state: 0x6000, has_left: 0 }
    }
}

/// A value as it was found.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Missing,
    Number(u64),
    Bytes(Vec<u8>),
}

global_asm!(
    ".pushsection .text.clew_capture_run,\"ax\",@progbits",
    // clew_capture_run(rdi code, rsi machine): gs is the private block, where words of the frame are free.
    ".globl clew_capture_run",
    "clew_capture_run:",
    "push rbx; push rbp; push r12; push r13; push r14; push r15",
    // Where the code's function returns to, as far as that code knows.
    "push {RETURN_PC}",
    "mov gs:[{frame}], rsp",
    "mov gs:[{frame} + 8], rsi",
    "mov gs:[{frame} + 16], rdi",
    "mov [rsi + 8 * 4], rsp",
    "movq xmm0, [rsi + {vectors}]; movq xmm1, [rsi + {vectors} + 8]",
    "movq xmm2, [rsi + {vectors} + 16]; movq xmm3, [rsi + {vectors} + 24]",
    "ldmxcsr [rsi + {float_state}]",
    "push qword ptr [rsi + {flags}]",
    "popfq",
    "mov rax, [rsi]; mov rcx, [rsi + 8]; mov rdx, [rsi + 16]; mov rbx, [rsi + 24]; mov rbp, [rsi + 40]",
    "mov rdi, [rsi + 56]; mov r8, [rsi + 64]; mov r9, [rsi + 72]; mov r10, [rsi + 80]; mov r11, [rsi + 88]",
    "mov r12, [rsi + 96]; mov r13, [rsi + 104]; mov r14, [rsi + 112]; mov r15, [rsi + 120]; mov rsi, [rsi + 48]",
    "jmp gs:[{frame} + 16]",
    ".globl clew_capture_left",
    "clew_capture_left:",
    "mov gs:[{frame} + 24], rdi",
    "mov rdi, gs:[{frame} + 8]",
    "mov dword ptr [rdi + {has_left}], 1",
    "jmp 2f",
    ".globl clew_capture_went_on",
    "clew_capture_went_on:",
    "mov gs:[{frame} + 24], rdi",
    "mov rdi, gs:[{frame} + 8]",
    "2:",
    "mov [rdi], rax; mov [rdi + 8], rcx; mov [rdi + 16], rdx; mov [rdi + 24], rbx; mov [rdi + 32], rsp",
    "mov [rdi + 40], rbp; mov [rdi + 48], rsi; mov rax, gs:[{frame} + 24]; mov [rdi + 56], rax",
    "mov [rdi + 64], r8; mov [rdi + 72], r9; mov [rdi + 80], r10; mov [rdi + 88], r11",
    "mov [rdi + 96], r12; mov [rdi + 104], r13; mov [rdi + 112], r14; mov [rdi + 120], r15",
    "mov rsp, gs:[{frame}]",
    "pushfq",
    "pop qword ptr [rdi + {flags}]",
    "movq [rdi + {vectors}], xmm0; movq [rdi + {vectors} + 8], xmm1",
    "movq [rdi + {vectors} + 16], xmm2; movq [rdi + {vectors} + 24], xmm3",
    "stmxcsr [rdi + {float_state}]",
    "push 0x1f80; ldmxcsr [rsp]; pop rax; cld",
    "pop rax; pop r15; pop r14; pop r13; pop r12; pop rbp; pop rbx",
    "ret",
    ".popsection",
    frame = const FRAME_OFFSET,
    vectors = const offset_of!(Machine, vectors),
    flags = const offset_of!(Machine, flags),
    float_state = const offset_of!(Machine, float_state),
    has_left = const offset_of!(Machine, has_left),
    RETURN_PC = const RETURN_PC,
);

// SAFETY: the labels above; and glibc's functions, as its headers have them.
unsafe extern "C" {
    fn clew_capture_run(code: u64, machine: *mut Machine);
    fn clew_capture_left();
    fn clew_capture_went_on();
    fn mmap(address: u64, size: usize, protection: i32, flags: i32, file: i32, offset: i64) -> u64;
    fn syscall(number: i64, ...) -> i64;
    fn sigaction(signal: i32, action: *const Action, before: *mut Action) -> i32;
}

/// glibc's struct sigaction.
#[repr(C)]
struct Action {
    handler: extern "C" fn(i32, *mut u8, *mut u64),
    mask: [u64; 16],
    flags: i32,
    restorer: u64,
}

/// A private block, and room for code.
struct Ground {
    block: u64,
    code: u64,
}

/// The block's address, for the handler.
static BLOCK: AtomicU64 = AtomicU64::new(0);

/// When the clock was kept last.
pub static CLOCK: AtomicU64 = AtomicU64::new(0);

static GROUND: OnceLock<Mutex<Ground>> = OnceLock::new();

/// A fault while the program's memory is read goes on at the landing.
extern "C" fn on_fault(_: i32, _: *mut u8, context: *mut u64) {
    /// ucontext_t: gregs[REG_RIP], in words.
    const RIP: usize = 5 + 16;
    let block = BLOCK.load(Ordering::Relaxed);
    // SAFETY: the thread is in emitted code, and its block is mapped.
    unsafe {
        let landing = (block + u64::from(GS_CAPTURE_LANDING)) as *mut u64;
        assert!(*landing != 0, "a fault where none may come");
        *context.add(RIP) = *landing;
        *landing = 0;
    }
}

fn make_ground() -> Mutex<Ground> {
    const READ_WRITE: i32 = 3;
    const ALL: i32 = 7;
    const PRIVATE_ANONYMOUS: i32 = 0x22;
    const SIGSEGV: i32 = 11;
    const SA_SIGINFO: i32 = 4;
    // SAFETY: new mappings, and a handler that stays.
    unsafe {
        let block = mmap(0, (OPEN_CALLS_OFFSET + CALL_WINDOW_BYTES) as usize, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0);
        let code = mmap(0, CODE_BYTES, ALL, PRIVATE_ANONYMOUS, -1, 0);
        assert!(block as i64 > 0 && code as i64 > 0);
        let action = Action { handler: on_fault, mask: [0; 16], flags: SA_SIGINFO, restorer: 0 };
        assert_eq!(sigaction(SIGSEGV, &action, core::ptr::null_mut()), 0);
        BLOCK.store(block, Ordering::Relaxed);
        Mutex::new(Ground { block, code })
    }
}

/// A place with captures of some forms, with these actions.
pub fn place_of(forms: &[(u32, Form)]) -> Arc<Place> {
    // SAFETY: all zeros are a place.
    let asked = |action: &u32| CapturePlace { action: *action, ..unsafe { core::mem::zeroed() } };
    place_asked(&forms.iter().map(|(action, form)| (asked(action), form.clone())).collect::<Vec<_>>())
}

/// A place with captures as they are asked for, but for where they are.
pub fn place_asked(forms: &[(CapturePlace, Form)]) -> Arc<Place> {
    let mut heap = Vec::new();
    let mut asked = Vec::new();
    for (number, (place, form)) in forms.iter().enumerate() {
        let packed = crate::instrument::captures::form::samples::pack(form);
        let (form_start, form_bytes) = (heap.len() as u32, packed.len() as u32);
        asked.push(CapturePlace { pc: 0x1000, number: number as u32, form_start, form_bytes, ..*place });
        heap.extend(packed);
    }
    let mut captures = Captures::new();
    assert_eq!(captures.replace(&asked, &heap).1, 0, "all of them are forms");
    captures.at(AppPc::from_raw(0x1000)).unwrap().clone()
}

/// A ring of a thread that captures.
pub struct Ring {
    pub slot: ThreadSlot,
    records: [[u8; 64]; RING_BYTES as usize / 64],
}

impl Ring {
    /// An empty one, to which so many bytes were ever written.
    pub fn new(head: u64) -> Box<Ring> {
        // SAFETY: all zeros are a slot.
        let mut slot: ThreadSlot = unsafe { core::mem::zeroed() };
        (slot.ring_head, slot.ring_tail) = (head, head);
        Box::new(Ring { slot, records: [[0xee; 64]; RING_BYTES as usize / 64] })
    }

    /// Has the thread write into it.
    pub fn lend(&mut self, context: &mut ThreadContext) {
        context.capture.slot_address = &raw mut self.slot as u64;
        context.capture.ring = self.records.as_ptr() as u64;
    }

    /// The record that a count of bytes stands for.
    ///
    /// # Safety
    /// Any bytes are a `T`.
    pub unsafe fn read<T: Copy>(&self, position: u64) -> T {
        const { assert!(size_of::<T>() == 64) };
        let record = &self.records[position as usize % RING_BYTES as usize / 64];
        // SAFETY: the caller's promise; there are as many bytes.
        unsafe { record.as_ptr().cast::<T>().read_unaligned() }
    }
}

/// What came of it.
pub struct Run {
    pub outcome: u32,
    pub machine: Machine,
    pub values: Vec<Vec<Value>>,
    pub code_bytes: usize,
    /// How often a handler took nothing.
    pub missed: u64,
}

/// Emits a place's captures and runs them; `set_up` sees the context before.
pub fn run(place: &Place, machine: &Machine, set_up: impl FnOnce(&mut ThreadContext)) -> Run {
    run_beside(0, place, machine, set_up)
}

/// The same with tables of aggregates at an address.
pub fn run_beside(aggregates: u64, place: &Place, machine: &Machine, set_up: impl FnOnce(&mut ThreadContext)) -> Run {
    run_made(place, machine, set_up, |emitter, outlets| {
        let outlets = Outlets { aggregates, ..outlets };
        let behind = emit(emitter, place, AppPc::from_raw(0x1000), ExitId::from_raw(7), outlets);
        assert_eq!(behind, emitter.address());
        emitter.jump_anywhere(went_on());
    })
}

/// How often a handler took nothing.
pub static MISSED: AtomicU64 = AtomicU64::new(0);

/// Where code goes on that has not left.
pub fn went_on() -> CachePc {
    CachePc::from_raw(clew_capture_went_on as *const () as u64)
}

/// Runs what `make` emits.
pub fn run_made(
    place: &Place,
    machine: &Machine,
    set_up: impl FnOnce(&mut ThreadContext),
    make: impl FnOnce(&mut Emitter, Outlets),
) -> Run {
    const SET_GS: i64 = 0x1001;
    const ARCH_PRCTL: i64 = 158;
    let ground = GROUND.get_or_init(make_ground).lock().unwrap_or_else(|error| error.into_inner());
    // SAFETY: the block and the code are this test's as long as it holds the lock; gs is nobody's in this process.
    unsafe {
        let context = &mut *(ground.block as *mut ThreadContext);
        (context as *mut ThreadContext as *mut u8).write_bytes(0, size_of::<ThreadContext>());
        context.self_address = ground.block;
        context.gate.stack_top = ground.block + STACK_OFFSET + STACK_BYTES;
        context.gate.gate_exit = clew_capture_left as *const () as u64;
        CLOCK.store(ticks(), Ordering::Relaxed);
        set_up(context);
        if context.capture.slot_address == 0 {
            // Without a ring it leaves.
            CLOCK.store(0, Ordering::Relaxed);
        }
        let whole = core::slice::from_raw_parts_mut(ground.code as *mut u8, CODE_BYTES);
        let (hot, cold) = whole.split_at_mut(CODE_BYTES - 0x1000);
        let cold_base = cold.as_ptr() as u64;
        let mut emitter = Emitter::new(hot, ground.code, cold, cold_base);
        let outlets = Outlets {
            ring_bytes: RING_BYTES,
            aggregates: 0,
            clock: CLOCK.as_ptr() as u64,
            tick_ns: TICK_NS.as_ptr() as u64,
            armed: ARMED.as_ptr() as u64,
            before_return: false,
            overwrites: false,
        };
        make(&mut emitter, outlets);
        let code_bytes = emitter.position();
        assert!(!emitter.overflowed());
        assert_eq!(syscall(ARCH_PRCTL, SET_GS, ground.block), 0);
        let mut after = Box::new(machine.clone());
        clew_capture_run(ground.code, &mut *after);
        assert_eq!(context.capture.landing, 0);
        let values = place.programs.iter().map(|program| {
            (0..program.form.operations.len()).map(|index| read_value(ground.block, program, index)).collect()
        });
        let missed = MISSED.swap(0, Ordering::Relaxed);
        Run { missed, outcome: context.capture.outcome, machine: *after, values: values.collect(), code_bytes }
    }
}

/// # Safety
/// The block is mapped.
unsafe fn read_value(block: u64, program: &crate::instrument::captures::layout::Program, index: usize) -> Value {
    let slot = program.slot(index);
    // SAFETY: as the caller promises; slots of laid out programs are inside.
    unsafe {
        if program.may_miss[index] && *((block + u64::from(GS_CAPTURE_MISSING + slot)) as *const u8) != 0 {
            return Value::Missing;
        }
        let value = *((block + u64::from(GS_CAPTURE_VALUES + 8 * slot)) as *const u64);
        if program.form.kind_of(index) != Kind::TEXT || program.form.operations[index].code == op::LITERAL {
            return Value::Number(value);
        }
        let start = (block + u64::from(GS_CAPTURE_TEXTS + program.texts[index])) as *const u8;
        Value::Bytes(core::slice::from_raw_parts(start, value as usize).to_vec())
    }
}
