/* what: a handler reads and changes all registers in its context, vector registers too, and what it leaves there is taken
 * build: -O1 -fno-stack-protector
 * traits: oracle
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include "note.h"

static greg_t seen[23];
static uint32_t seen_vector[4];
static int change;

static void handler(int number, siginfo_t *info, void *opaque)
{
    (void)number, (void)info;
    ucontext_t *context = opaque;
    memcpy(seen, context->uc_mcontext.gregs, sizeof seen);
    memcpy(seen_vector, &context->uc_mcontext.fpregs->_xmm[3], 16);
    if (change) {
        context->uc_mcontext.gregs[REG_R12] = 1212;
        context->uc_mcontext.gregs[REG_RBX] += 5;
        context->uc_mcontext.gregs[REG_RAX] = 555;
        context->uc_mcontext.gregs[REG_EFL] |= 1;
        context->uc_mcontext.fpregs->_xmm[3].element[1] = 0xabcdef;
        sigaddset(&context->uc_sigmask, SIGUSR2);
    }
    __asm__ volatile("pcmpeqd %%xmm3, %%xmm3\n pcmpeqd %%xmm15, %%xmm15" ::: "xmm3", "xmm15");
}

int main(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGUSR1, &action, NULL);
    int pid = getpid();
    for (change = 0; change < 2; change++) {
        uint64_t r12, rbx, rax, carry, vector[2], other;
        __asm__ volatile("mov $12, %%r12d\n mov $13, %%r13d\n mov $14, %%r14d\n mov $33, %%ebx\n"
                         "movabs $0x1122334455667788, %%rdx\n movq %%rdx, %%xmm3\n pshufd $0x44, %%xmm3, %%xmm3\n"
                         "movdqa %%xmm3, %%xmm15\n"
                         "mov %[pid], %%edi\n mov %[number], %%esi\n mov $62, %%eax\n xor %%edx, %%edx\n clc\n syscall\n"
                         "setc %%dl\n movzbl %%dl, %%edx\n"
                         "mov %%rbx, %[rbx]\n mov %%r12, %%rcx\n"
                         "movdqu %%xmm3, %[vector]\n movq %%xmm15, %%rsi\n"
                         : "=a"(rax), "=d"(carry), [rbx] "=m"(rbx), "=c"(r12), [vector] "=m"(vector), "=S"(other)
                         : [pid] "r"(pid), [number] "i"(SIGUSR1)
                         : "rbx", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "xmm3", "xmm15", "memory", "cc");
        printf("seen rbx %lld r12 %lld r13 %lld r14 %lld rdi %d rsi %lld rax %lld\n", seen[REG_RBX], seen[REG_R12],
               seen[REG_R13], seen[REG_R14], seen[REG_RDI] == pid, seen[REG_RSI], seen[REG_RAX]);
        printf("rcx is the next address %d, flags %llx %llx\n", seen[REG_RCX] == seen[REG_RIP], seen[REG_EFL] & ~0x100ll, seen[REG_R11] & ~0x100ll); /* without the trap flag: a debugger sets it */
        printf("vector %x %x %x %x\n", seen_vector[0], seen_vector[1], seen_vector[2], seen_vector[3]);
        printf("then rbx %lu r12 %lu rax %lu carry %lu vector %lx %lx other %lx\n", rbx, r12, rax, carry, vector[0], vector[1], other);
    }
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    printf("mask kept %d\n", sigismember(&mask, SIGUSR2));
    return 0;
}
