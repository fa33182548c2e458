/* Code that is made at run time and runs often. Before it is included: OFTEN, the number of calls. */
#pragma once
#include <stdint.h>
#include <string.h>

enum { PAGE = 4096 };

typedef int function(int);

static unsigned char *code;
/* lea eax, [rdi + N]; ret */
static const unsigned char adder[] = {0x8d, 0x87, 0, 0, 0, 0, 0xc3};

static unsigned char *make(int page, int offset, int number)
{
    unsigned char *at = code + page * PAGE + offset;
    memcpy(at, adder, sizeof adder);
    memcpy(at + 2, &number, 4);
    return at;
}

static long often(const unsigned char *at)
{
    long sum = 0;
    for (int i = 0; i < OFTEN; i++)
        sum += ((function *)(uintptr_t)at)(i);
    return sum;
}
