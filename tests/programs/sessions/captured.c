/* Functions that are called with numbers, texts and the end of memory, for captures of anything.
 *
 * Arguments: how many turns, and the file into which goes what all of it comes to. Rounds
 * towards zero and blocks faults now and then.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <xmmintrin.h>

#define PLACE(n)                                                                                                       \
    __attribute__((noinline)) double place_##n(long turn, char *text, char *last, long a, long b, double x, float y)   \
    {                                                                                                                  \
        return (double)(turn + text[0] + *last + a % 7 + b % 5 + (n)) + x / 3 + (double)(y / 3);                        \
    }

PLACE(0)
PLACE(1)
PLACE(2)
PLACE(3)

static unsigned long state = 88172645463325252ul;

static unsigned long next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

int main(int argc, char **argv)
{
    (void)argc;
    long n_turns = atol(argv[1]);
    char *pages = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(pages + 4096, 4096);
    strcpy(pages + 4096 - 8, "at end");
    memset(pages, 'x', 16);
    memcpy(pages + 16, "y needle\0needle", 16);
    double total = 0;
    sigset_t all, before;
    sigfillset(&all);
    for (long turn = 0; turn < n_turns; turn++) {
        char *last = pages + 4096 - 1 - next() % 8;
        long a = (long)next() >> next() % 64, b = turn % 3 ? a : (long)(next() % 5) - 2;
        _mm_setcsr(turn % 4 == 1 ? 0x7f80 : 0x1f80);
        if (turn % 5 == 2)
            sigprocmask(SIG_SETMASK, &all, &before);
        total += place_0(turn, pages + next() % 32, last, a, b, (double)a / 3, (float)b);
        total += place_1(turn, pages + next() % 32, last, a, b, -(double)turn, 1e30f);
        total += place_2(turn, pages + next() % 32, last, b, a, 0.0 / (double)(turn % 2), (float)turn);
        total += place_3(turn, pages + 18, last, -a, turn, 1.5, 0.1f);
        if (turn % 5 == 2)
            sigprocmask(SIG_SETMASK, &before, NULL);
    }
    FILE *file = fopen(argv[2], "w");
    fprintf(file, "%a\n", total);
    fclose(file);
}
