/* what: a program that writes to its own code by /proc/self/mem, although it may not write there
 * build: -O1
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include "note.h"

extern unsigned char constant[], later[];
int get(void);
int get_later(void);
__asm__(".text\n.globl get, constant, get_later, later\n"
        "get: .byte 0xb8\nconstant: .long 1\nret\n.balign 64\n"
        "get_later: .byte 0xb8\nlater: .long 5\nret\n");

int main(void)
{
    int sum = 0;
    for (int i = 0; i < 200; i++)
        sum += get();
    note("sum", sum);
    int reads = open("/proc/self/mem", O_RDONLY);
    unsigned char seen = 0;
    note("read", pread(reads, &seen, 1, (off_t)(uintptr_t)constant));
    note("seen", seen);
    close(reads);
    int mem = open("/proc/self/mem", O_RDWR);
    for (int round = 2; round < 6; round++) {
        unsigned char value = (unsigned char)round;
        note("written", pwrite(mem, &value, 1, (off_t)(uintptr_t)constant));
        note("get", get());
        sum = 0;
        for (int i = 0; i < 200; i++)
            sum += get();
        note("sum", sum);
    }
    lseek(mem, (off_t)(uintptr_t)later, SEEK_SET);
    note("get later", get_later());
    note("written", write(mem, "\x09", 1));
    note("get later", get_later());
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, "\xb8\x11\0\0\0\xc3", 6);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    note("made", ((int (*)(void))page)());
    note("written", pwrite(mem, "\x12", 1, (off_t)(uintptr_t)page + 1));
    note("made", ((int (*)(void))page)());
    close(mem);
    note("made", ((int (*)(void))page)());
    return 0;
}
