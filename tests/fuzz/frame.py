"""The frame around random functions: starts them from known states, and hashes all that they leave behind.

Pure: gives assembly text. Every call of a function starts with all registers, flags and memory set from its index and
the repetition; after it all general, vector, mask and x87 registers, the flags, the scratch memory and the stack go
into one hash for each function. The program prints the hashes, 8 bytes each, then one of what its signal handlers saw,
in one write. A program that is to be single-stepped hashes nothing: its steps are compared.
"""

from __future__ import annotations

from random import Random

from tests.fuzz.operands import SCRATCH_BYTES, SEGMENT_BYTES
from tests.fuzz.pieces import ARITHMETIC_FLAGS
from tests.fuzz.program import Program, Variant
from tests.fuzz.registers import GENERAL, RBX, name

FUEL = 60
STACK_BYTES = 128 * 1024
HASHED_STACK_BYTES = 2048
ROOM_BYTES = 1024  # of the stack above a function's return address
STATUS_ODD_FAULT = 77  # a fault at an address that is not in the table
STATUS_ODD_PLACE = 78  # a signal at an address outside the program

_SAFE_BYTES = 96  # of the stack below what a function leaves: the red zone, less the arguments that it may drop
_DUMP_X87 = 256 + 64 * 32  # where FXSAVE writes
_DUMP_BYTES = _DUMP_X87 + 512
_MEMORY_BYTES = SCRATCH_BYTES + 2 * SEGMENT_BYTES + 64  # scratch, the two segments, spots
_SA = {"siginfo": 4, "restorer": 0x04000000, "onstack": 0x08000000, "restart": 0x10000000}


def _vector_names(features: frozenset[str]) -> tuple[str, list[str]]:
    """The move that loads and stores whole vector registers, and their names."""
    if "avx512" in features:
        return "vmovdqu64", [f"zmm{n}" for n in range(32)]
    if "avx" in features:
        return "vmovdqu", [f"ymm{n}" for n in range(16)]
    return "movdqu", [f"xmm{n}" for n in range(16)]


def _load_state(features: frozenset[str]) -> list[str]:
    move, vectors = _vector_names(features)
    lines = [f"{move} {register}, [rax+{64 * n}]" for n, register in enumerate(vectors)]
    if "avx512" in features:
        lines += [f"kmovq k{n}, [rax+{8 * n}]" for n in range(8)]
    lines += [f"mov {name(number)}, [rax+{8 * number + 64}]" for number in GENERAL if number != 0]
    return [*lines, "mov rax, [rax+72]"]


def _store_state(features: frozenset[str]) -> list[str]:
    move, vectors = _vector_names(features)
    lines = [f"mov [rip+dump+{8 * number}], {name(number)}" for number in range(16)]
    lines += ["lea rsp, [rip+own_stack_end]", "pushfq", "pop [rip+dump+128]", "cld", "stmxcsr [rip+dump+136]"]
    lines += [f"{move} [rip+dump+{256 + 64 * n}], {register}" for n, register in enumerate(vectors)]
    if "avx512" in features:
        lines += [f"kmovq [rip+dump+{192 + 8 * n}], k{n}" for n in range(8)]
    return lines


def _store_x87() -> list[str]:
    """All but where its last instruction and operand were: x87_pointers.c is about these."""
    places = [f"mov qword ptr [rip+dump+{_DUMP_X87 + at}], 0" for at in (8, 16)]
    return [f"fxsave64 [rip+dump+{_DUMP_X87}]", f"mov word ptr [rip+dump+{_DUMP_X87 + 6}], 0", *places]


def _hash(start: str, n_bytes: int) -> list[str]:
    """rax = hash of rax and the memory. Changes rcx and rdx."""
    return [
        f"lea rdx, [rip+{start}]",
        f"mov ecx, {n_bytes // 8}",
        "90: mov rbx, rax",
        "crc32 rax, qword ptr [rdx]",
        "rol rbx, 32",
        "add rax, rbx",
        "lea rdx, [rdx+8]",
        "dec ecx",
        "jnz 90b",
    ]


def _syscall(number: int, *arguments: str) -> list[str]:
    registers = ("rdi", "rsi", "rdx", "r10", "r8", "r9")
    moves = [
        f"lea {register}, [rip+{value}]" if value[0].isalpha() else f"mov {register}, {value}"
        for register, value in zip(registers, arguments, strict=False)
    ]
    return [*moves, f"mov eax, {number}", "syscall"]


def _set_handlers(program: Program) -> list[str]:
    signals = {Variant.PLAIN: (), Variant.TIMER: (14,), Variant.FAULTS: (4, 5, 7, 8, 11)}[program.variant]
    lines = _syscall(131, "signal_stack", "0") if program.has_alternate_stack else []
    for number in signals:
        lines += _syscall(13, str(number), "action", "0", "8")
    if program.variant is Variant.TIMER:
        lines += _syscall(38, "0", "interval", "0")
    if program.variant is Variant.FAULTS:
        lines += _syscall(10, "guard", "4096", "0")
    return lines


_SCRIBBLE = [
    *(f"xor {name(number, 32)}, {name(number, 32)}" for number in GENERAL if number != RBX),
    "stc",
    "sbb rdi, rdi",
]

# ucontext: uc_mcontext.gregs at 40: r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags, selectors, err,
# trapno, oldmask, cr2, then the pointer to the floating point state: mxcsr at 24, xmm0 to xmm15 from 160 on.
_RIP, _EFLAGS, _TRAPNO, _FPSTATE = 40 + 16 * 8, 40 + 17 * 8, 40 + 20 * 8, 40 + 23 * 8


def _timer_handler() -> list[str]:
    return [
        ".globl handler",
        "handler:",
        f"mov rax, [rdx+{_RIP}]",
        "lea rcx, [rip+_start]",
        "lea rdi, [rip+text_end]",
        "cmp rax, rcx",
        "jb odd_place",
        "cmp rax, rdi",
        "jae odd_place",
        "inc dword ptr [rip+n_signals]",
        "pxor xmm0, xmm0",
        "pcmpeqd xmm15, xmm15",
        *_SCRIBBLE,
        "ret",
        "odd_place:",
        *_syscall(231, str(STATUS_ODD_PLACE)),
    ]


def _fault_handler(features: frozenset[str]) -> list[str]:
    lines = [".globl handler", "handler:", "mov r8, rdx", "mov rax, [rip+fault_hash]"]
    # Arithmetic flags that the program overwrites before it reads them may be anything when a handler looks.
    places = [40 + 8 * number for number in (*range(17), 19, 20)]
    for place in places:
        lines += ["mov rbx, rax", f"crc32 rax, qword ptr [r8+{place}]", "rol rbx, 32", "add rax, rbx"]
    lines += [f"mov rbx, [r8+{_EFLAGS}]", f"and ebx, {~ARITHMETIC_FLAGS & 0xFFFFFFFF:#x}", "crc32 rax, rbx"]
    lines += [f"cmp qword ptr [r8+{_TRAPNO}], 14", "jne 1f", f"crc32 rax, qword ptr [r8+{_TRAPNO + 16}]", "1:"]
    lines += [f"mov r9, [r8+{_FPSTATE}]", "crc32 eax, dword ptr [r9+24]", "lea r10, [r9+160]", "mov ecx, 32"]
    lines += ["2: mov rbx, rax", "crc32 rax, qword ptr [r10]", "rol rbx, 32", "add rax, rbx", "lea r10, [r10+8]"]
    lines += ["dec ecx", "jnz 2b", "mov [rip+fault_hash], rax", "inc dword ptr [rip+n_signals]"]
    lines += [f"mov rax, [r8+{_RIP}]", "lea rcx, [rip+faults]", "lea rdx, [rip+faults_end]"]
    lines += ["3: cmp rcx, rdx", "jae 4f", "cmp rax, [rcx]", "je 5f", "lea rcx, [rcx+16]", "jmp 3b"]
    lines += ["4:", *_syscall(231, str(STATUS_ODD_FAULT))]
    lines += ["5: mov rax, [rcx+8]", f"mov [r8+{_RIP}], rax"]
    lines += ["vzeroall" if "avx" in features else "pxor xmm5, xmm5", *_SCRIBBLE, "ret"]
    return lines


def _main(program: Program) -> list[str]:
    lines = [".globl _start", "_start:", "lea rsp, [rip+own_stack_end]", "mov r15, rsp"]
    lines += _syscall(158, "0x1002", "fs_area") + _syscall(158, "0x1001", "gs_area") + _set_handlers(program)
    lines += ["next:", *_fill_memory()]
    lines += ["lea rax, [rip+patterns]", "mov ecx, [rip+index]", "imul ecx, ecx, 136", "mov edx, [rip+repetition]"]
    lines += ["imul edx, edx, 392", "add ecx, edx", "and ecx, 2047", "lea rax, [rax+rcx]"]
    lines += [f"lea rsp, [rip+stack_end-{ROOM_BYTES}]"]
    lines += ["mov rbx, [rax+40]", f"and ebx, {ARITHMETIC_FLAGS:#x}", "push rbx", f"mov qword ptr [rip+fuel], {FUEL}"]
    lines += ["ldmxcsr [rip+plain_mxcsr]", "fninit"]
    lines += ["mov ecx, [rip+index]", "lea rdx, [rip+functions]", "mov rcx, [rdx+rcx*8]", "mov [rip+callee], rcx"]
    lines += [*_load_state(program.features), "popfq", "call [rip+callee]"]
    lines += [*_store_state(program.features), "ldmxcsr [rip+plain_mxcsr]"]
    lines += ["mov ebx, [rip+index]", "lea r8, [rip+hashes]", "lea r8, [r8+rbx*8]", "mov rax, [r8]"]
    if not program.is_stepped:
        below = HASHED_STACK_BYTES if program.has_alternate_stack else _SAFE_BYTES
        lines += [*_store_x87(), *_hash("dump", _DUMP_BYTES), *_hash("memory", _MEMORY_BYTES)]
        lines += _hash(f"stack_end-{ROOM_BYTES + below}", ROOM_BYTES + below)
    lines += ["mov [r8], rax", "mov ecx, [rip+index]", "inc ecx", f"cmp ecx, {len(program.functions)}", "jb 91f"]
    lines += ["xor ecx, ecx", "inc dword ptr [rip+repetition]", "91: mov [rip+index], ecx"]
    lines += [f"cmp dword ptr [rip+repetition], {program.repetitions}", "jb next"]
    n_bytes = 8 * (len(program.functions) + 1)
    return [*lines, *_syscall(1, "1", "hashes", str(n_bytes)), *_syscall(231, "0")]


def _fill_memory() -> list[str]:
    """Memory and stack as at the start. Single-stepping counts every repetition, so there are few."""
    return [
        "lea rsi, [rip+patterns]",
        "lea rdi, [rip+memory]",
        f"mov ecx, {_MEMORY_BYTES // 8}",
        "rep movsq",
        f"lea rdi, [rip+stack_end-{2 * HASHED_STACK_BYTES}]",
        f"mov ecx, {2 * HASHED_STACK_BYTES // 8}",
        "xor eax, eax",
        "rep stosq",
    ]


def _data(program: Program) -> list[str]:
    random = Random(program.seed ^ 0x5EED)
    flags = _SA["siginfo"] | _SA["restorer"] | _SA["restart"] | (_SA["onstack"] if program.has_alternate_stack else 0)
    n_patterns = max(_MEMORY_BYTES, 2048 + 2048) + 64
    special = (0, 1, (1 << 64) - 1, 1 << 63, 0x3FF0000000000000, 0x4000000040000000, 7)
    patterns = [
        random.choice(special) if random.random() < 0.15 else random.getrandbits(64) for _ in range(n_patterns // 8)
    ]
    lines = [".data", ".balign 64", "patterns:", *(f".quad {value:#x}" for value in patterns)]
    lines += ["modulo:", *(f".byte {(n * 37 + n // 8) % 8}" for n in range(256)), ".balign 8"]
    lines += ["functions:", *(f".quad {function.label}" for function in program.functions)]
    used = {line for function in program.functions for line in function.lines()}
    text = "\n".join(used)
    for label, entries in program.tables:
        if label in text:
            lines += [f"{label}:", *(f".quad {entry}" for entry in entries)]
    lines += ["plain_mxcsr: .long 0x1f80, 0", "interval: .quad 0, 200, 0, 200"]
    if program.variant is not Variant.PLAIN:
        lines += [f"action: .quad handler, {flags:#x}, restore, 0"]
    lines += ["signal_stack: .quad alternate, 0, 65536"]
    lines += ['.section .data.faults, "aw"', "faults:"]
    return lines


def _room(program: Program) -> list[str]:
    return [
        ".bss",
        ".balign 4096",
        "guard_before: .skip 4096",
        "guard: .skip 4096",
        "memory:",
        f"scratch: .skip {SCRATCH_BYTES}",
        f"fs_area: .skip {SEGMENT_BYTES}",
        f"gs_area: .skip {SEGMENT_BYTES}",
        "spot: .skip 64",
        ".skip 4096",
        ".balign 64",
        "dump: .skip 4096",
        "fuel: .skip 8",
        "kept_rcx: .skip 8",
        "callee: .skip 8",
        "index: .skip 4",
        "repetition: .skip 4",
        "n_signals: .skip 8",
        f"hashes: .skip {8 * len(program.functions)}",
        "fault_hash: .skip 8",
        ".balign 4096",
        f".skip {STACK_BYTES}",
        "stack_end: .skip 4096",
        ".skip 16384",
        "own_stack_end: .skip 64",
        "alternate: .skip 65536",
    ]


def assembly(program: Program) -> str:
    """The whole program for the GNU assembler."""
    lines = [".intel_syntax noprefix", *_data(program), ".text", *_main(program)]
    for function in program.functions:
        lines += function.lines()
    if program.variant is Variant.TIMER:
        lines += _timer_handler()
    elif program.variant is Variant.FAULTS:
        lines += _fault_handler(program.features)
    if program.variant is not Variant.PLAIN:
        lines += [".globl restore", "restore:", "mov eax, 15", "syscall"]
    lines += ["text_end:", "nop", ".section .data.faults", "faults_end: .quad 0", *_room(program)]
    return "\n".join(lines) + "\n"
