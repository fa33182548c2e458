/* what: threads that stay in 32-bit code for many instructions, and that make a system call there; both come back and go on
 * build: -O1 -pthread -fno-pie -no-pie
 * lost: uncounted_instructions released_threads
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 8192, SYS32_GETPID = 20 };
static struct { unsigned offset; unsigned short selector; } __attribute__((packed)) place;

/* Calls 32-bit code, which gets `argument` in ecx, on a stack of its own in low memory; what it leaves in eax. */
static unsigned call32(const char *code, size_t size, unsigned argument)
{
    unsigned char *low = mmap(NULL, BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    memcpy(low, code, size);
    place.offset = (unsigned)(uintptr_t)low;
    place.selector = 0x23;
    unsigned long answer = SYS32_GETPID;
    __asm__ volatile("mov %%rsp, %%rbx\n mov %2, %%rsp\n lcall *%3\n mov %%rbx, %%rsp"
                     : "+a"(answer), "+c"(argument)
                     : "r"(low + BYTES), "m"(place)
                     : "rbx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
    return (unsigned)answer;
}

static void *stay(void *unused)
{
    (void)unused;
    /* mov eax, 0; add eax, ecx; dec ecx, a prefix in 64-bit code; jnz back; retf */
    printf("stayed %u\n", call32("\xb8\0\0\0\0\x01\xc8\x49\x75\xfb\xcb", 11, 30000));
    return NULL;
}

static void *call(void *unused)
{
    (void)unused;
    /* int 0x80; dec eax; inc eax; retf */
    printf("called %d\n", call32("\xcd\x80\x48\x40\xcb", 5, 0) == (unsigned)getpid());
    return NULL;
}

int main(void)
{
    void *(*const ways[])(void *) = {stay, call};
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, ways[i], NULL);
        pthread_join(thread, NULL);
    }
    puts("done");
    return 0;
}
