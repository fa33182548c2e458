/* Gives a function the addresses of strings on pages of all kinds, which it does not read; says what they are.
   Of constants and of files nobody has touched the pages; a guard page can't be read, nor can what lies behind the end
   of a file. With `crossing` a string begins on a page and would go on in a guard page. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define KINDS(X) X(constant) X(file) X(file_end) X(behind_file) X(guard) X(crossing) X(ended) X(nothing) X(own)

/* Pages of their own, far from anything that is read. */
static const char before[4 * PAGE] = {1};
static const char constant[4 * PAGE] __attribute__((aligned(PAGE))) = {[2 * PAGE] = 'c', 'o', 'n', 's', 't'};
const char *volatile unused = before;

__attribute__((noipa)) void given(const char *text) { __asm__ volatile("" : : "r"(text) : "memory"); }

int main(void)
{
    char path[] = "probed_pages.XXXXXX", line[64], own[] = "on the stack";
    int descriptor = mkstemp(path);
    unlink(path);
    if (ftruncate(descriptor, 4 * PAGE) || pwrite(descriptor, "of a file", 9, PAGE) != 9) return 1;
    char *file = mmap(NULL, 4 * PAGE, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (pwrite(descriptor, "at the end", 10, 2 * PAGE) != 10 || ftruncate(descriptor, 2 * PAGE + 6)) return 1;
    char *guarded = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(guarded + PAGE, PAGE, PROT_NONE);
    memcpy(guarded + PAGE - 5, "cross", 5);
    memcpy(guarded + PAGE - 11, "ended", 6);
    const char *texts[] = {constant + 2 * PAGE, file + PAGE, file + 2 * PAGE, file + 3 * PAGE, guarded + PAGE,
                           guarded + PAGE - 5, guarded + PAGE - 11, (const char *)8, own};
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        for (unsigned n = 0; n < sizeof texts / sizeof *texts; n++) given(texts[n]);
        puts("done");
        fflush(stdout);
    }
    return 0;
}
