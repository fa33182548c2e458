/* Static probes behind counters (semaphores): a thread comes to one only if somebody has raised its counter.
 *
 * Says `ready`, and for each line what came of it: `turn`: the counters of both probes, and how often each was come to so far; `raise`, `lower`:
 * the same, once it has done so with the first counter itself; `fork`, with a child that does the same for lines that begin with `child`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../static_probes.h"

#define SHOP(name) NOTE("shop", name, name "_semaphore", "0", "-4@%[n]")

__attribute__((used, section(".probes"))) volatile unsigned short sold_semaphore, lost_semaphore;
static int n_sold, n_lost;

static void turn(const char *word)
{
    sold_semaphore += !strcmp(word, "raise");
    sold_semaphore -= !strcmp(word, "lower");
    for (int n = 0; n < 3; n++) {
        if (sold_semaphore) {
            n_sold++;
            __asm__ volatile("990: nop\n" SHOP("sold")::[n] "D"(n));
        }
        if (lost_semaphore) {
            n_lost++;
            __asm__ volatile("990: nop\n" SHOP("lost")::[n] "r"(n));
        }
    }
}

int main(void)
{
    char line[64];
    int to_child[2], from_child[2];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (!strcmp(line, "fork")) {
            if (pipe(to_child) || pipe(from_child))
                return 1;
            if (fork() == 0) {
                dup2(to_child[0], 0);
                dup2(from_child[1], 1);
                close(to_child[1]);
                stdin = fdopen(0, "r");
                continue;
            }
            close(to_child[0]);
        }
        if (!strncmp(line, "child ", 6)) {
            char said[64];
            dprintf(to_child[1], "%s\n", line + 6);
            ssize_t n = read(from_child[0], said, sizeof said);
            fwrite(said, 1, n > 0 ? (size_t)n : 0, stdout);
            fflush(stdout);
            continue;
        }
        turn(line);
        printf("%d %d %d %d\n", sold_semaphore, lost_semaphore, n_sold, n_lost);
        fflush(stdout);
    }
    return 0;
}
