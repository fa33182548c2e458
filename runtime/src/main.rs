//! The freestanding image: entry point, boot stack, note, panic handler.
#![no_std]
#![no_main]

use clew_runtime::cpu::context::AT_ENTRY;
use clew_runtime::protocol::{self, error_code, StartBlock};
use core::arch::global_asm;
use core::panic::PanicInfo;

/// Size of the stack on which the first thread starts, before it has a block of its own.
const BOOT_STACK_BYTES: usize = 0x1_0000;

#[repr(C, align(64))]
struct BootStack([u8; BOOT_STACK_BYTES]);

static mut BOOT_STACK: BootStack = BootStack([0; BOOT_STACK_BYTES]);

global_asm!(
    ".pushsection .text.clew_entry,\"ax\",@progbits",
    // The controller points rip here and rdi to the start block; all other registers are the application's, as the
    // start block tells them.
    ".globl _start",
    "_start:",
    "cld",
    // Where threads are sent to the gates later this one's vector state is the controller's to keep; if that is killed, ours.
    "lea rax, [rip + {vector}]",
    ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
    "movups [rax + 16 * \\n], xmm\\n",
    ".endr",
    "stmxcsr [rax + 256]",
    "lea rsp, [rip + {stack} + {size}]",
    "xor ebp, ebp",
    "call {start}",
    "ud2",
    ".popsection",
    vector = sym AT_ENTRY,
    stack = sym BOOT_STACK,
    size = const BOOT_STACK_BYTES,
    start = sym start,
);

extern "C" fn start(block: &'static StartBlock) -> ! {
    // SAFETY: the controller enters the image at `_start` with the block that it filled.
    unsafe {
        match block.role {
            protocol::role::PROBES => clew_runtime::probe::worker::start(block),
            _ => clew_runtime::dispatch::life::start::start(block),
        }
    }
}

/// An ELF note: what the controller checks before it injects the image.
#[repr(C)]
struct Note {
    name_bytes: u32,
    description_bytes: u32,
    note_type: u32,
    name: [u8; 8],
    version: u32,
    reserved: u32,
    schema_hash: [u8; 32],
}

#[link_section = ".note.clew"]
#[used]
static NOTE: Note = Note {
    name_bytes: 5,
    description_bytes: 40,
    note_type: 1,
    name: *b"clew\0\0\0\0",
    version: protocol::VERSION,
    reserved: 0,
    schema_hash: protocol::SCHEMA_HASH,
};

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    let (line, file) = info.location().map_or((0, 0), |location| {
        let bytes = location.file().as_bytes();
        // The last eight characters of the file's name tell it apart.
        let tail = bytes.iter().rev().take(8).rev().fold(0u64, |word, byte| (word << 8) | u64::from(*byte));
        (u64::from(location.line()), tail)
    });
    clew_runtime::report_panic(error_code::PANIC, line, file);
    loop {
        // SAFETY: ends the process; status 125 tells the controller to look at the status page.
        unsafe { clew_runtime::sys::syscall(clew_runtime::cpu::sys::number::EXIT_GROUP, [125, 0, 0, 0, 0, 0]) };
    }
}
