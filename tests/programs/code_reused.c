/* what: a buffer of code that is filled anew, as by a just-in-time compiler: what comes lies across what was there, at other places
 * build: -O1
 * traits: oracle-instructions
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include "note.h"

typedef int function(void);

enum { FUNCTIONS = 12, ROUNDS = 24, BUFFER_BYTES = 4096 };

/* mov ecx, turns; mov eax, value; `padding` times add eax, 1; again: add eax, 2; dec ecx; jnz again; ret. Returns its size. */
static long make(unsigned char *code, int value, int turns, int padding)
{
    static const unsigned char loop[] = {0x83, 0xc0, 2, 0xff, 0xc9, 0x75, 0xf9, 0xc3};
    unsigned char *at = code;
    *at++ = 0xb9;
    memcpy(at, &turns, 4);
    at += 4;
    *at++ = 0xb8;
    memcpy(at, &value, 4);
    at += 4;
    for (int i = 0; i < padding; i++, at += 3)
        memcpy(at, "\x83\xc0\x01", 3);
    memcpy(at, loop, sizeof loop);
    return at + sizeof loop - code;
}

/* Where `add eax, 1` was in the old code, `mov edx, 10` begins: nothing comes to the old places again. */
static int across(unsigned char *buffer)
{
    /* xor eax, eax; add eax, 1; add eax, 2; ret */
    static const unsigned char old[] = {0x31, 0xc0, 0x83, 0xc0, 1, 0x83, 0xc0, 2, 0xc3};
    /* mov edx, 10; mov eax, edx; add eax, 20; ret */
    static const unsigned char new[] = {0xba, 10, 0, 0, 0, 0x89, 0xd0, 0x83, 0xc0, 20, 0xc3};
    int sum = 0;
    memcpy(buffer, old, sizeof old);
    for (int i = 0; i < 3; i++)
        sum += ((function *)buffer)();
    memcpy(buffer + 2, new, sizeof new);
    for (int i = 0; i < 3; i++)
        sum += ((function *)(buffer + 2))();
    return sum;
}

/* The old loop starts in the middle of the new code, and later that has a loop which starts there, too. */
static int over_a_loop(unsigned char *buffer)
{
    /* xor eax, eax; mov ecx, 3; again: add eax, 1; dec ecx; jnz again; ret */
    static const unsigned char old[] = {0x31, 0xc0, 0xb9, 3, 0, 0, 0, 0x83, 0xc0, 1, 0xff, 0xc9, 0x75, 0xf9, 0xc3};
    /* at 1: mov ecx, 2; nop; again: add eax, 5; dec ecx; jnz again; ret */
    static const unsigned char new[] = {0xb9, 2, 0, 0, 0, 0x90, 0x83, 0xc0, 5, 0xff, 0xc9, 0x75, 0xf9, 0xc3};
    int sum = 0;
    memcpy(buffer, old, sizeof old);
    for (int i = 0; i < 4; i++)
        sum += ((function *)buffer)();
    memcpy(buffer + 1, new, sizeof new);
    for (int i = 0; i < 4; i++) {
        int value = i;
        __asm__ volatile("call *%1" : "+a"(value) : "r"(buffer + 1) : "rcx", "cc", "memory");
        sum += value;
    }
    return sum;
}

/* The whole buffer again and again, each time with functions of other lengths; some of them are hot. */
static int start_anew(unsigned char *buffer)
{
    int sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned char *functions[FUNCTIONS], *next = buffer + round % 5;
        for (int i = 0; i < FUNCTIONS; i++) {
            functions[i] = next;
            next += make(next, round * i, 1 + (round + i) % 3, (round * 7 + i * 3) % 11);
            int times = (round + i) % 6 == 0 ? 20 : 3;
            for (int k = 0; k < times; k++)
                sum += ((function *)functions[i])() + ((function *)functions[i / 2])();
        }
    }
    return sum;
}

int main(void)
{
    unsigned char *buffer =
        mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    note("across", across(buffer));
    note("over a loop", over_a_loop(buffer));
    note("anew", start_anew(buffer));
    return 0;
}
