/* what: code made at run time: mapped, run, unmapped, and other code at the same address; RW to RX and back; two mappings
 * build: -O1
 * traits: oracle-instructions
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int function(int);

/* lea eax, [rdi + value]; ret */
static void emit(unsigned char *at, int value)
{
    static const unsigned char head[] = {0x8d, 0x87};
    memcpy(at, head, 2);
    memcpy(at + 2, &value, 4);
    at[6] = 0xc3;
}

/* A loop that adds `value` ten times, so that it is linked to itself. */
static void emit_loop(unsigned char *at, int value)
{
    static const unsigned char code[] = {0xb9, 10, 0, 0, 0, 0x31, 0xc0, 0x05, 0, 0, 0, 0, 0xff, 0xc9, 0x75, 0xf7, 0x01, 0xf8, 0xc3};
    memcpy(at, code, sizeof code);
    memcpy(at + 8, &value, 4);
}

/* push rbx; mov rbx, rdi; mov edi, esi; call rbx; add eax, value; pop rbx; ret: calls its first argument. */
static void emit_caller(unsigned char *at, int value)
{
    static const unsigned char code[] = {0x53, 0x48, 0x89, 0xfb, 0x89, 0xf7, 0xff, 0xd3, 0x05, 0, 0, 0, 0, 0x5b, 0xc3};
    memcpy(at, code, sizeof code);
    memcpy(at + 9, &value, 4);
}

int main(void)
{
    long sum = 0;
    void *address = NULL;
    for (int i = 0; i < 30; i++) {
        unsigned char *code = mmap(address, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
                                   MAP_PRIVATE | MAP_ANONYMOUS | (address ? MAP_FIXED : 0), -1, 0);
        if (i % 2)
            emit(code + 16, i);
        else
            emit_loop(code + 16, i);
        emit_caller(code + 256, i);
        for (int j = 0; j < 5; j++)
            sum = sum * 3 + ((function *)(code + 16))(j) + ((int (*)(function *, int))(code + 256))((function *)(code + 16), j);
        munmap(code, 8192);
        address = code;                       /* the same place again */
    }
    printf("unmapped and mapped: %ld\n", sum);

    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sum = 0;
    for (int i = 0; i < 30; i++) {
        mprotect(page, 4096, PROT_READ | PROT_WRITE);
        emit(page, i * 7);
        emit_loop(page + 64, i);
        mprotect(page, 4096, PROT_READ | PROT_EXEC);
        sum = sum * 5 + ((function *)page)(i) + ((function *)(page + 64))(i);
    }
    printf("toggled: %ld\n", sum);

    int file = memfd_create("code", 0);
    if (ftruncate(file, 4096) != 0)
        return 1;
    unsigned char *writable = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    function *runnable = (function *)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
    emit(writable, 4711);
    sum = 0;
    for (int i = 0; i < 10; i++)
        sum += runnable(i);
    printf("two mappings: %ld\n", sum);

    /* Replaced by MAP_FIXED over it, and moved by mremap. */
    unsigned char *first = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    emit(first, 1);
    sum = ((function *)first)(1);
    unsigned char *again = mmap(first, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    emit(again, 100);
    sum = sum * 1000 + ((function *)again)(1);
    unsigned char *place = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *moved = mremap(again, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    sum = sum * 1000 + ((function *)moved)(2);
    printf("replaced and moved: %ld\n", sum);
    return 0;
}
