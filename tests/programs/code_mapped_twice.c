/* what: code that is written at one address and run at another: a file mapped twice, made executable later, moved, written by a call
 * build: -O1
 * traits: oracle-instructions
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int function(int);

enum { SIZE = 8192 };

/* lea eax, [rdi + x]; ret */
static const unsigned char adder[] = {0x8d, 0x87, 0, 0, 0, 0, 0xc3};

static void *map(int protection, int flags, int file)
{
    void *memory = mmap(NULL, SIZE, protection, flags, file, 0);
    if (memory == MAP_FAILED)
        exit(2);
    return memory;
}

/* Writes and runs in turn; the page's end holds code that is not written. */
static void run(const char *what, unsigned char *written, unsigned char *code)
{
    long sum = 0;
    memcpy(written, adder, sizeof adder);
    memcpy(written + 4000, adder, sizeof adder);
    for (int i = 0; i < 60; i++) {
        memcpy(written + 2, &i, 4);
        sum = sum * 3 + ((function *)code)(i) + ((function *)(code + 4000))(1);
    }
    printf("%s: %ld\n", what, sum);
}

int main(void)
{
    int file = memfd_create("code", 0);
    if (file < 0 || ftruncate(file, SIZE) != 0)
        return 2;
    unsigned char *written = map(PROT_READ | PROT_WRITE, MAP_SHARED, file);
    unsigned char *code = map(PROT_READ | PROT_EXEC, MAP_SHARED, file);
    run("twice", written, code);

    unsigned char *later = map(PROT_READ, MAP_SHARED, file);
    mprotect(later, SIZE, PROT_READ | PROT_EXEC);
    run("made executable later", written, later);

    unsigned char *moved = mremap(code, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, later);
    run("moved", written, moved);

    unsigned char *anonymous = map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    unsigned char *copy = mremap(anonymous, 0, SIZE, MREMAP_MAYMOVE);
    if (copy == MAP_FAILED || mprotect(copy, SIZE, PROT_READ | PROT_EXEC) != 0)
        return 2;
    run("anonymous", anonymous, copy);

    unsigned char *private = map(PROT_READ | PROT_EXEC, MAP_PRIVATE, file);
    run("private", written, private);
    long sum = 0;
    for (int i = 0; i < 20; i++) {
        if (pwrite(file, &i, 4, 2) != 4)
            return 2;
        sum = sum * 3 + ((function *)private)(i);
    }
    printf("by a call: %ld\n", sum);

    /* The same address, and memory that nobody else has. */
    munmap(moved, SIZE);
    code = mmap(moved, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memcpy(code, adder, sizeof adder);
    mprotect(code, SIZE, PROT_READ | PROT_EXEC);
    printf("alone: %d\n", ((function *)code)(7));
    return 0;
}
