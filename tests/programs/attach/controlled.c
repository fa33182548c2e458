/* what: calls a function as often as each line of stdin says, beside threads that compute; says in the end whether all was right
 * build: -O1 -pthread
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SPINNERS = 2 };

static volatile int is_over;
static struct counts {
    volatile uint64_t single, twice;
} counts[SPINNERS];

__attribute__((noipa)) uint64_t counted(uint64_t value)
{
    return value * 3 + 1;
}

__attribute__((noipa)) uint64_t outer(uint64_t value)
{
    uint64_t inner = counted(value);
    return inner ^ value;
}

__attribute__((noipa)) uint64_t recursive(uint64_t depth)
{
    return depth == 0 ? 1 : recursive(depth - 1) + depth;
}

static void *spin(void *argument)
{
    struct counts *mine = argument;
    while (!is_over) {
        mine->single++;
        mine->twice += 2;
        /* Long blocks: of many short ones the order would be most of what is recorded. */
        asm volatile(".rept 200\n\tpause\n\t.endr");
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[SPINNERS];
    for (int i = 0; i < SPINNERS; i++)
        pthread_create(&threads[i], NULL, spin, &counts[i]);
    puts("ready");
    fflush(stdout);
    char line[64];
    uint64_t sum = 0, expected = 0;
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (line[0] == 'r') {
            printf("recursive %lu\n", (unsigned long)recursive(4));
        } else if (line[0] == 'f') {
            pid_t child = fork();
            if (child == 0)
                _exit((int)(outer(7) & 0x7f));
            int status = 0;
            waitpid(child, &status, 0);
            printf("child %d\n", WEXITSTATUS(status));
        } else {
            uint64_t n = strtoul(line, NULL, 10);
            for (uint64_t i = 0; i < n; i++) {
                sum += outer(i);
                expected += (i * 3 + 1) ^ i;
            }
            printf("did %lu\n", (unsigned long)n);
        }
        fflush(stdout);
    }
    is_over = 1;
    int is_right = sum == expected;
    for (int i = 0; i < SPINNERS; i++) {
        pthread_join(threads[i], NULL);
        is_right &= counts[i].twice == 2 * counts[i].single;
    }
    puts(is_right ? "good" : "bad");
    return 0;
}
