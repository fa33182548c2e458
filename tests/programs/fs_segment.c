/* what: the fs base: thread-local variables, arch_prctl, rdfsbase and wrfsbase, fs operands in branches
 * build: -O1 -mfsgsbase -fno-stack-protector
 * needs: fsgsbase
 * traits: oracle
 */
#include <asm/prctl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static __thread unsigned long local = 5;
static unsigned long block[64];

static __attribute__((noinline)) unsigned long add_one(unsigned long x) { return x + 1; }

int main(void)
{
    unsigned long saved, sum = 0, got = 0;
    syscall(SYS_arch_prctl, ARCH_GET_FS, &saved);
    unsigned long read_back;
    __asm__ volatile("rdfsbase %0" : "=r"(read_back));
    block[0] = (unsigned long)block;
    block[5] = 77;
    block[6] = (unsigned long)add_one;
    for (int i = 0; i < 20; i++) {
        unsigned long value, result;
        __asm__ volatile("wrfsbase %[block]\n"
                         "movq %%fs:40, %[value]\n"
                         "call *%%fs:48\n"
                         "addq $1, %%fs:40\n"
                         "rdfsbase %%rcx\n"
                         "subq %[block], %%rcx\n"
                         "addq %%rcx, %%rax\n"
                         "wrfsbase %[saved]\n"
                         : [value] "=&r"(value), "=&a"(result)
                         : [block] "r"(block), [saved] "r"(saved), "D"((unsigned long)i)
                         : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
        sum += value * 10 + result;
        local += sum & 3;
    }
    /* A system call while fs points elsewhere. */
    __asm__ volatile("wrfsbase %[block]\n mov $39, %%eax\n syscall\n wrfsbase %[saved]"
                     : "=&a"(got)
                     : [block] "r"(block), [saved] "r"(saved)
                     : "rcx", "r11", "memory");
    printf("%d %lu %lu %lu %d\n", saved == read_back, sum, local, block[5], got == (unsigned long)getpid());
    return 0;
}
