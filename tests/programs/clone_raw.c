/* what: clone without libc's threads: shared memory, own stack, own gs base, cleared tid, and clone3
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/mman.h>
#include "note.h"

static volatile int results[4];
static volatile int cleared[4];

/* The child must not return on this stack: everything is done in assembly. */
static long start(unsigned long flags, void *stack, volatile int *tid, volatile int *result)
{
    long got;
    register volatile int *r10 __asm__("r10") = tid;
    register long r8 __asm__("r8") = 0;
    register volatile int *r12 __asm__("r12") = result;
    __asm__ volatile("syscall\n"
                     "test %%eax, %%eax\n"
                     "jnz 1f\n"
                     "mov $0, %%ecx\n"
                     "2: add $3, %%ecx\n"
                     "cmp $3000, %%ecx\n"
                     "jb 2b\n"
                     "mov %%ecx, (%%r12)\n"
                     "push $5\n pop %%rdi\n"
                     "mov $60, %%eax\n"
                     "syscall\n"
                     "1:\n"
                     : "=a"(got)
                     : "a"(SYS_clone), "D"(flags), "S"(stack), "d"(NULL), "r"(r10), "r"(r8), "r"(r12)
                     : "rcx", "r11", "memory");
    return got;
}

static long start3(struct clone_args *arguments, volatile int *result)
{
    long got;
    register volatile int *r12 __asm__("r12") = result;
    __asm__ volatile("syscall\n"
                     "test %%eax, %%eax\n"
                     "jnz 1f\n"
                     "movl $77, (%%r12)\n"
                     "mov $60, %%eax\n"
                     "xor %%edi, %%edi\n"
                     "syscall\n"
                     "1:\n"
                     : "=a"(got)
                     : "a"(SYS_clone3), "D"(arguments), "S"(sizeof *arguments), "r"(r12)
                     : "rcx", "r11", "memory");
    return got;
}

int main(void)
{
    const unsigned long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    for (int i = 0; i < 4; i++) {
        char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        cleared[i] = 1;
        if (i < 2) {
            if (start(flags | CLONE_CHILD_CLEARTID, stack + 65536, &cleared[i], &results[i]) < 0)
                return 1;
        } else {
            struct clone_args arguments = {
                .flags = flags | CLONE_CHILD_CLEARTID,
                .child_tid = (uint64_t)(uintptr_t)&cleared[i],
                .stack = (uint64_t)(uintptr_t)stack,
                .stack_size = 65536,
            };
            if (start3(&arguments, &results[i]) < 0)
                return 2;
        }
        while (cleared[i] != 0)
            syscall(SYS_futex, &cleared[i], FUTEX_WAIT, 1, NULL, NULL, 0);
        note("result", results[i]);
    }
    return 0;
}
