/* what: a parent attaches to a child whose code is hot: breakpoints there, single steps, vector and general registers shown and changed
 * build: -O1 -fno-stack-protector
 * lost: released_threads
 */
#include "trace.h"

long work(long value);
extern const char work_end[];
__asm__(".globl work, work_end\n"
        "work: movq %rdi, %xmm5\n"
        "mov $3, %ecx\n"
        "1: add %rdi, %rcx\n"
        "sub %rdi, %rcx\n"
        "dec %ecx\n"
        "jnz 1b\n"
        "call 2f\n"
        "work_end: ret\n"
        "2: movq %xmm5, %rax\n"
        "inc %rax\n"
        "ret\n");

int main(void)
{
    struct gate told = make_gate(), begun = make_gate();
    pid_t child = fork();
    if (child == 0) {
        long sum = 0;
        for (long i = 0; i < 20000; i++)
            sum += work(i) - i;
        open_gate(begun);
        pass_gate(told);
        _exit((int)(sum / 20000 + work(4) + work(5) + work(6)));
    }
    pass_gate(begun);
    note("attach", ptrace(PTRACE_ATTACH, child, NULL, NULL));
    note("stopped", wait_stop(child));
    struct user_regs_struct registers = registers_of(child);
    note("in code", is_in_code(child, registers.rip));
    const long code = ptrace(PTRACE_PEEKTEXT, child, work, NULL);
    ptrace(PTRACE_POKETEXT, child, work, (code & ~0xffl) | 0xcc);
    ptrace(PTRACE_CONT, child, NULL, NULL);
    open_gate(told);
    note("trapped", wait_stop(child));
    registers = registers_of(child);
    note("behind the breakpoint", (long)(registers.rip - (uintptr_t)work));
    note("argument", (long)registers.rdi);
    note("its caller is code", is_in_code(child, (uint64_t)ptrace(PTRACE_PEEKDATA, child, registers.rsp, NULL)));

    ptrace(PTRACE_POKETEXT, child, work, code);
    registers.rip = (uintptr_t)work;
    registers.rdi = 10;
    ptrace(PTRACE_SETREGS, child, NULL, &registers);
    int steps = 0;
    do {
        ptrace(PTRACE_SINGLESTEP, child, NULL, NULL);
        if (wait_stop(child) != SIGTRAP)
            break;
        registers = registers_of(child);
        note("step to", (long)(registers.rip - (uintptr_t)work));
    } while (++steps < 30 && registers.rip != (uintptr_t)work_end);
    struct user_fpregs_struct vectors;
    ptrace(PTRACE_GETFPREGS, child, NULL, &vectors);
    note("xmm5", (long)vectors.xmm_space[5 * 4]);
    note("result", (long)registers.rax);

    ptrace(PTRACE_POKETEXT, child, work, (code & ~0xffl) | 0xcc);
    ptrace(PTRACE_CONT, child, NULL, NULL);
    note("again", wait_stop(child));
    registers = registers_of(child);
    note("argument", (long)registers.rdi);
    ptrace(PTRACE_POKETEXT, child, work, code);
    registers.rip = (uintptr_t)work;
    ptrace(PTRACE_SETREGS, child, NULL, &registers);
    note("detach", ptrace(PTRACE_DETACH, child, NULL, NULL));
    note("ended", wait_stop(child));
    return 0;
}
