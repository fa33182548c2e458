/* what: a thread that makes a system call of 32-bit code, which is not followed, then handles signals on its alternate stack; SIGTERM ends
 * build: -O1 -pthread -fno-pie -no-pie
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile sig_atomic_t is_over, is_done, n_handled, n_bad, is_wanted, is_far;
static char *stack;
enum { SYS32_GETPID = 20 };

static void end(int signal)
{
    (void)signal;
    is_over = 1;
}

static void handle(int signal)
{
    stack_t now;
    (void)signal;
    sigaltstack(NULL, &now);
    n_bad += now.ss_sp != stack || now.ss_flags != SS_ONSTACK || (char *)&now < stack || (char *)&now > stack + 65536;
    n_handled++;
}

/* 32-bit code in low memory, by a far call: int 0x80, retf. */
static void be_far(void)
{
    unsigned char *code = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    memcpy(code, "\xcd\x80\xcb", 3);
    mprotect(code, 4096, PROT_READ | PROT_EXEC);
    static struct { unsigned offset; unsigned short selector; } __attribute__((packed)) place = {0, 0x23};
    place.offset = (unsigned)(uintptr_t)code;
    long answer = SYS32_GETPID;
    __asm__ volatile("mov %%rsp, %%rbx\n mov %1, %%rsp\n lcall *%2\n mov %%rbx, %%rsp"
                     : "+a"(answer)
                     : "r"(code + 8192), "m"(place)
                     : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
    n_bad += answer != getpid();
}

static void *run(void *unused)
{
    stack = aligned_alloc(4096, 65536);
    stack_t alternate = {.ss_sp = stack, .ss_size = 65536};
    sigaltstack(&alternate, NULL);
    while (!is_wanted)
        ;
    be_far();
    is_far = 1;
    while (!is_done)
        ;
    return unused;
}

static void want(int signal)
{
    (void)signal;
    is_wanted = 1;
}

int main(void)
{
    pthread_t thread;
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    signal(SIGTERM, end);
    signal(SIGUSR2, want);
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&thread, NULL, run, NULL);
    puts("ready");
    fflush(stdout);
    while (!is_far)
        usleep(1000);
    puts("far");
    fflush(stdout);
    while (!is_over)
        usleep(1000);
    for (int i = 0; i < 10; i++) {
        int before = n_handled;
        pthread_kill(thread, SIGUSR1);
        while (n_handled == before)
            usleep(1000);
    }
    is_done = 1;
    pthread_join(thread, NULL);
    puts(n_bad ? "bad" : "good");
    return n_bad != 0;
}
