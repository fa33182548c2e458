/* what: on SIGUSR1 it goes to 32-bit code, where it is until SIGTERM comes; that ends it, or, with an argument, the end of stdin does
 * build: -O1 -fno-pie -no-pie
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile sig_atomic_t is_wanted;
static unsigned char *low;
enum { FLAG = 4096, BYTES = 8192 };

static void want(int signal)
{
    (void)signal;
    is_wanted = 1;
}

static void end(int signal)
{
    (void)signal;
    low[FLAG] = 1;
}

int main(int n_arguments, char **arguments)
{
    low = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    unsigned flag = (unsigned)(uintptr_t)(low + FLAG);
    /* cmp byte [flag], 0; je back; mov eax, 41; inc eax, which is a prefix in 64-bit code; retf */
    memcpy(low, "\x80\x3d....\0\x74\xf7\xb8\x29\0\0\0\x40\xcb", 16);
    memcpy(low + 2, &flag, sizeof flag);
    mprotect(low, 4096, PROT_READ | PROT_EXEC);
    signal(SIGUSR1, want);
    static char stack[65536];
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = end, .sa_flags = SA_ONSTACK}, NULL);
    puts("ready");
    fflush(stdout);
    while (!is_wanted)
        usleep(1000);
    puts("there");
    fflush(stdout);
    static struct { unsigned offset; unsigned short selector; } __attribute__((packed)) place = {0, 0x23};
    place.offset = (unsigned)(uintptr_t)low;
    long answer = 0;
    __asm__ volatile("mov $0x2b, %%ecx\n mov %%ecx, %%ds\n mov %%rsp, %%rbx\n mov %1, %%rsp\n lcall *%2\n mov %%rbx, %%rsp"
                     : "+a"(answer)
                     : "r"(low + BYTES), "m"(place)
                     : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
    printf("%ld\n", answer);
    fflush(stdout);
    (void)arguments;
    while (n_arguments > 1 && getchar() != EOF)
        continue;
    return 0;
}
