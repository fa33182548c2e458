"""What a thread has in its registers, flags and red zone is as it was behind a probe, whatever is taken there.

The program loads everything with patterns, comes to an instruction that does nothing, and compares; it is asked
natively first, so that what it says is right of a machine without probes.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.address import Pid
from clew.sessions.probes.probe_session import ProbeSession
from clew.sessions.probes.specs import ContextField, ProbeSpec

ROUNDS = 400
PROGRAM = r"""
#include <cpuid.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* rax rcx rdx rbx rbp rsi rdi r8 to r15, the flags, MXCSR, the red zone, sixteen vector registers. */
struct state {
    unsigned long general[15], flags, float_state, red_zone[16];
    unsigned char vectors[16][32];
} __attribute__((aligned(32)));
struct state before, after;
#define COMPARED (264 + sizeof before.vectors)
unsigned long kept[8];
void come_by(void), come_by_wide(void);

#define EACH(op) op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7) op(8) op(9) op(10) op(11) op(12) op(13) op(14) op(15)
#define LOAD_WIDE(n) "vmovups before+264+32*" #n "(%rip), %ymm" #n "\n"
#define STORE_WIDE(n) "vmovups %ymm" #n ", after+264+32*" #n "(%rip)\n"
#define LOAD(n) "movups before+264+32*" #n "(%rip), %xmm" #n "\n"
#define STORE(n) "movups %xmm" #n ", after+264+32*" #n "(%rip)\n"
#define LOAD_WORD(n) "movq before+136+8*" #n "(%rip), %rax\nmovq %rax, -128+8*" #n "(%rsp)\n"
#define STORE_WORD(n) "movq -128+8*" #n "(%rsp), %rax\nmovq %rax, after+136+8*" #n "(%rip)\n"
#define ROUTINE(name, probed, load, store) \
    ".globl " name "\n.type " name ",@function\n" name ":\n" \
    "pushq %rbx\npushq %rbp\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n" \
    EACH(load) "ldmxcsr before+128(%rip)\n" EACH(LOAD_WORD) \
    "movq before+0(%rip), %rax\nmovq before+8(%rip), %rcx\nmovq before+16(%rip), %rdx\nmovq before+24(%rip), %rbx\n" \
    "movq before+32(%rip), %rbp\nmovq before+40(%rip), %rsi\nmovq before+48(%rip), %rdi\nmovq before+56(%rip), %r8\n" \
    "movq before+64(%rip), %r9\nmovq before+72(%rip), %r10\nmovq before+80(%rip), %r11\nmovq before+88(%rip), %r12\n" \
    "movq before+96(%rip), %r13\nmovq before+104(%rip), %r14\nmovq before+112(%rip), %r15\n" \
    "leaq -128(%rsp), %rsp\npushq before+120(%rip)\npopfq\nleaq 128(%rsp), %rsp\n" \
    ".globl " probed "\n" probed ":\n" \
    "nopl 0x12345678(%rax)\n" \
    "leaq -128(%rsp), %rsp\npushfq\npopq after+120(%rip)\nleaq 128(%rsp), %rsp\ncld\n" \
    "movq %rax, after+0(%rip)\nmovq %rcx, after+8(%rip)\nmovq %rdx, after+16(%rip)\nmovq %rbx, after+24(%rip)\n" \
    "movq %rbp, after+32(%rip)\nmovq %rsi, after+40(%rip)\nmovq %rdi, after+48(%rip)\nmovq %r8, after+56(%rip)\n" \
    "movq %r9, after+64(%rip)\nmovq %r10, after+72(%rip)\nmovq %r11, after+80(%rip)\nmovq %r12, after+88(%rip)\n" \
    "movq %r13, after+96(%rip)\nmovq %r14, after+104(%rip)\nmovq %r15, after+112(%rip)\n" \
    EACH(STORE_WORD) "stmxcsr after+128(%rip)\n" EACH(store) \
    "pushq $0x1f80\nldmxcsr (%rsp)\npopq %rax\n" \
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbp\npopq %rbx\nret\n.size " name ", . - " name "\n"
__asm__(".text\n" ROUTINE("come_by", "probed", LOAD, STORE));
__asm__(".text\n" ROUTINE("come_by_wide", "probed_wide", LOAD_WIDE, STORE_WIDE));

static unsigned long random_word(void)
{
    static unsigned long state = 88172645463325252;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

int main(int n, char **words)
{
    static const unsigned bits[] = {1, 4, 0x10, 0x40, 0x80, 0x400, 0x800};
    char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    strcpy(page, "what is somewhere else");
    int wrong = 0, is_wide = !!__builtin_cpu_supports("avx");
    puts("ready");
    fflush(stdout);
    getchar();
    for (int round = 0; round < atoi(words[1]); round++) {
        for (unsigned i = 0; i < sizeof before / 8; i++)
            ((unsigned long *)&before)[i] = random_word();
        before.flags = 0x202;
        for (int i = 0; i < 7; i++)
            before.flags |= random_word() & 1 ? bits[i] : 0;
        before.float_state = 0x1f80 | (random_word() & 3) << 13 | (random_word() & 0x3f);
        before.general[6] = round % 3 == 0 ? (unsigned long)page : round % 3 == 1 ? round : random_word();
        before.general[5] = round;
        if (!is_wide)
            for (int i = 0; i < 16; i++)
                memset(before.vectors[i] + 16, 0, 16);
        memset(&after, 0, sizeof after);
        (is_wide ? come_by_wide : come_by)();
        after.float_state &= 0xffffffff;
        if (memcmp(&before, &after, COMPARED)) {
            wrong++;
            unsigned long *was = (unsigned long *)&before, *is = (unsigned long *)&after;
            for (unsigned i = 0; i < COMPARED / 8; i++)
                if (was[i] != is[i] && wrong < 3)
                    fprintf(stderr, "word %u: %lx, %lx\n", i, was[i], is[i]);
        }
    }
    printf("%d %d\n", wrong, is_wide);
    fflush(stdout);
    getchar();
    return 0;
}
"""

TAKEN = {
    "nothing": (),
    "registers": tuple(ContextField(name, f"${name}") for name in ("rax", "rcx", "rdx", "rsp", "r15", "rip")),
    "all registers and the flags": (ContextField("regs", is_registers=True),),
    "a string somewhere": (ContextField("text", "str($rdi)"),),
    "two strings": (ContextField("text", "str($rdi)"), ContextField("again", "str($rdi, 5)")),
    "numbers of memory": (ContextField("own", "*(u64 *)($rsp + 8)"), ContextField("other", "*(i32 *)$rdi")),
    "floating-point numbers": (ContextField("half", "(double)$rsi / 2"), ContextField("sum", "$xmm1 + 1.5")),
    "what the runtime knows": (ContextField("name", "comm"), ContextField("tid", "tid")),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("registers")
    source = folder / "registers.c"
    source.write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-o", folder / "registers", source], check=True)
    return folder / "registers"


@pytest.fixture
def started(program: Path) -> Iterator[subprocess.Popen[str]]:
    """The program, which waits for a line."""
    with subprocess.Popen(
        [program, str(ROUNDS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def probe(process: subprocess.Popen[str], spec: ProbeSpec) -> tuple[list[str], list[dict[str, object]]]:
    """Let the program run with a probe; what it says, and the events."""
    session = ProbeSession([spec])
    events: list[dict[str, object]] = []
    try:
        session.attach(Pid(process.pid))
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        said = process.stdout.readline().split()
        batch = session.read()
        assert not batch.losses
        for _, table in batch.tables:
            events += table.to_pylist()
    finally:
        session.close()
    _, errors = process.communicate("\n", timeout=30)
    assert (process.returncode, errors) == (0, "")
    return said, sorted(events, key=lambda event: event["sequence"])  # type: ignore[arg-type,return-value]


def where(program: Path) -> str:
    """The instruction that the program comes to on this machine."""
    output = subprocess.run([program, "10"], input="\n\n", capture_output=True, text=True, check=True, timeout=30)
    said = output.stdout.split()
    assert said[:2] == ["ready", "0"], "natively, nothing is another than it was"
    return "probed_wide" if said[2] == "1" else "probed"


@pytest.mark.parametrize("taken", TAKEN)
def test_everything_is_as_it_was(program: Path, started: subprocess.Popen[str], taken: str) -> None:
    said, events = probe(started, ProbeSpec("here", where(program), fields=TAKEN[taken]))
    assert said[0] == "0"
    assert len(events) == ROUNDS


@pytest.mark.parametrize(
    ("condition", "n_taken"),
    [
        ("$rsi == 7", 1),
        ("$rsi < 10 || $rsi >= 390", 20),
        ("(i32)$rsi > 5 && !($rsi & 1) && $rcx != 0", 197),
        ("$rax == 1", 0),
        ("(double)$rsi < 2.5", 3),
        ("*(u64 *)$rsp != 0 && $rsi == 3", 1),
    ],
)
def test_everything_is_as_it_was_behind_conditions(
    program: Path, started: subprocess.Popen[str], condition: str, n_taken: int
) -> None:
    said, events = probe(started, ProbeSpec("here", where(program), condition=condition))
    assert said[0] == "0"
    assert len(events) == n_taken


def test_strings_are_what_the_program_has_there(program: Path, started: subprocess.Popen[str]) -> None:
    fields = (ContextField("round", "$rsi"), ContextField("text", "str($rdi, 12)"))
    _, events = probe(started, ProbeSpec("here", where(program), fields=fields))
    for number, event in enumerate(events):
        assert event["round"] == number
        assert event["text"] == (b"what is some" if number % 3 == 0 else None)


def test_a_function_is_as_it_was_where_it_begins_and_returns(program: Path, started: subprocess.Popen[str]) -> None:
    name = where(program).replace("probed", "come_by")
    said, events = probe(started, ProbeSpec("whole", name, is_function=True))
    assert said[0] == "0"
    assert len(events) == 2 * ROUNDS
