/* what: the gs base belongs to the program: arch_prctl, rdgsbase, wrgsbase, gs operands of all kinds, its selector
 * build: -O1 -mfsgsbase -fno-stack-protector
 * needs: fsgsbase
 * traits: oracle
 */
#include <asm/prctl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned long first[64], second[64];
static __attribute__((noinline, used)) unsigned long add_one(unsigned long x) { return x + 1; }

static unsigned long base_by_call(void)
{
    unsigned long base = 99;
    syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
    return base;
}

static unsigned long base_by_instruction(void)
{
    unsigned long base;
    __asm__ volatile("rdgsbase %0" : "=r"(base));
    return base;
}

static unsigned long use_operands(void)
{
    unsigned long sum = 0, scratch = 3;
    for (int i = 0; i < 10; i++) {
        __asm__ volatile("movq %%gs:8, %%rax\n addq %%rax, %[sum]\n"
                         "addq $3, %%gs:8\n"
                         "mov $16, %%ecx\n addq %%gs:(%%rcx), %[sum]\n"
                         "addq %%gs:8(%%rcx, %[scratch], 8), %[sum]\n"
                         "lea 1f(%%rip), %%rax\n movq %%rax, %%gs:56\n jmp *%%gs:56\n ud2\n"
                         "1: mov %[sum], %%rdi\n call *%%gs:64\n mov %%rax, %[sum]\n"
                         "pushq %%gs:16\n popq %%gs:24\n"
                         "movdqu %%gs:16, %%xmm0\n movdqu %%xmm0, %%gs:80\n"
                         "lock incq %%gs:80\n"
                         "cmpq $0, %%gs:80\n"
                         "setne %%al\n movzbl %%al, %%eax\n add %%rax, %[sum]\n"
                         "lea %%gs:16, %%rax\n add %%rax, %[sum]\n"
                         : [sum] "+&r"(sum), [scratch] "+&r"(scratch)
                         :
                         : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "memory", "cc");
    }
    return sum;
}

int main(void)
{
    printf("at the start %lx %lx\n", base_by_call(), base_by_instruction());
    unsigned short selector;
    __asm__ volatile("mov %%gs, %0" : "=r"(selector));
    printf("selector %x\n", selector);
    for (int i = 0; i < 64; i++) {
        first[i] = (unsigned long)i * 3;
        second[i] = (unsigned long)i * 5 + 1;
    }
    first[8] = second[8] = (unsigned long)add_one;
    printf("set %ld\n", syscall(SYS_arch_prctl, ARCH_SET_GS, first));
    printf("%d %d\n", base_by_call() == (unsigned long)first, base_by_instruction() == (unsigned long)first);
    printf("%lu\n", use_operands());
    __asm__ volatile("wrgsbase %0" ::"r"(second));
    printf("%d %d\n", base_by_call() == (unsigned long)second, base_by_instruction() == (unsigned long)second);
    printf("%lu\n", use_operands());
    printf("a bad base: %ld\n", syscall(SYS_arch_prctl, ARCH_SET_GS, 0xffff800000000000ul));
    printf("%d\n", base_by_instruction() == (unsigned long)second);
    unsigned low;
    __asm__ volatile("wrgsbase %k1\n rdgsbase %k0" : "=r"(low) : "r"(0x12345678u));
    printf("%x %lx\n", low, base_by_instruction());
    syscall(SYS_arch_prctl, ARCH_SET_GS, 0);
    printf("%lx\n", base_by_call());
    return 0;
}
