/* what: code moved by mremap: to another place, over other code, grown, shrunk, doubled by MREMAP_DONTUNMAP, partly unmapped
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, EXECUTABLE = PROT_READ | PROT_WRITE | PROT_EXEC };

static sigjmp_buf back;

static void handler(int number)
{
    (void)number;
    siglongjmp(back, 1);
}

static void fill(unsigned char *page, unsigned value)
{
    for (int i = 0; i < 4; i++) {
        unsigned each = value + (unsigned)i;
        page[i * 1000] = 0xb8;
        memcpy(page + i * 1000 + 1, &each, 4);
        page[i * 1000 + 5] = 0xc3;
    }
}

static void run(const char *what, unsigned char *page)
{
    for (int i = 0; i < 2; i++) {
        if (sigsetjmp(back, 1) != 0) {
            printf("%s: fault\n", what);
            return;
        }
        unsigned sum = 0;
        for (int j = 0; j < 4; j++)
            sum = sum * 10 + ((unsigned (*)(void))(page + j * 1000))();
        printf("%s: %u\n", what, sum);
    }
}

static unsigned char *map(int protection, int n)
{
    return mmap(NULL, (size_t)n * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    signal(SIGSEGV, handler);
    signal(SIGBUS, handler);
    for (unsigned round = 0; round < 3; round++) {
        unsigned char *first = map(EXECUTABLE, 2), *second = map(EXECUTABLE, 2), *place = map(PROT_NONE, 8);
        fill(first, 1);
        fill(first + PAGE, 2);
        fill(second, 3);
        fill(second + PAGE, 4);
        run("first", first);
        run("second", second);
        mprotect(first, 2 * PAGE, PROT_READ | PROT_EXEC);
        unsigned char *moved = mremap(first, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
        run("moved", moved);
        run("moved, second page", moved + PAGE);
        run("where it was", first);
        /* Over other code. */
        unsigned char *over = mremap(moved, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, second + PAGE);
        run("over the other", over);
        run("left alone", moved + PAGE);
        run("still there", second);
        /* Grown: the new page is zero, and then code. */
        mprotect(over, PAGE, EXECUTABLE);
        unsigned char *grown = mremap(over, PAGE, 3 * PAGE, MREMAP_MAYMOVE);
        fill(grown + 2 * PAGE, 7);
        run("grown", grown);
        run("grown, last page", grown + 2 * PAGE);
        unsigned char *shrunk = mremap(grown, 3 * PAGE, PAGE, 0);
        run("shrunk", shrunk);
        run("what was cut off", grown + 2 * PAGE);
        /* The old mapping stays, empty. */
        unsigned char *copy = mremap(second, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
        if (copy != MAP_FAILED) {
            run("moved away", copy);
            fill(second, 9);
            run("written again", second);
            run("the copy", copy);
        }
        errno = 0;
        void *failed = mremap(place, 8 * PAGE, 8 * PAGE, MREMAP_FIXED, second);
        printf("refused %d %s\n", failed == MAP_FAILED, strerrorname_np(errno));
        run("after the refusal", second);
        munmap(moved, 2 * PAGE);
        munmap(second, PAGE);
        munmap(copy, PAGE);
        munmap(shrunk, PAGE);
        munmap(place, 8 * PAGE);
    }
    return 0;
}
