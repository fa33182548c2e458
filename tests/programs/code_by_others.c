/* what: a parent writes to the code of its child by /proc/PID/mem, while that sleeps and while it runs; to its own code, and that of one with threads
 * build: -O1 -pthread
 */
#include "trace.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

/* Its result is the byte behind its first one. */
int answer(void);
__asm__(".balign 64\n"
        ".globl answer\n"
        "answer: mov $1, %eax\n"
        "ret\n"
        ".balign 64\n");

static volatile int *cells;

static int open_memory(pid_t process)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/mem", process);
    return open(path, O_RDWR);
}

static void write_answer(int memory, char value)
{
    note("written", pwrite(memory, &value, 1, (off_t)((uintptr_t)answer + 1)));
}

static int ask_often(void)
{
    int sum = 0;
    for (int i = 0; i < 5000; i++)
        sum += answer();
    return sum / 5000;
}

static void while_it_sleeps(void)
{
    struct gate begun = make_gate(), told = make_gate();
    pid_t child = fork();
    if (child == 0) {
        int sum = ask_often();
        open_gate(begun);
        pass_gate(told);
        sum = sum * 10 + ask_often();
        open_gate(begun);
        pass_gate(told);
        _exit(sum * 10 + ask_often());
    }
    pass_gate(begun);
    int memory = open_memory(child);
    write_answer(memory, 2);
    open_gate(told);
    pass_gate(begun);
    write_answer(memory, 3);
    open_gate(told);
    note("asleep", wait_stop(child));
    close(memory);
}

static void *ask_until(void *wanted)
{
    while (answer() != *(int *)wanted)
        cells[0]++;
    return NULL;
}

static void while_it_runs(void)
{
    cells[0] = 0;
    pid_t child = fork();
    if (child == 0) {
        int first = 4, second = 5;
        pthread_t thread;
        pthread_create(&thread, NULL, ask_until, &second);
        ask_until(&first);
        cells[1] = 1;
        pthread_join(thread, NULL);
        _exit(answer());
    }
    while (cells[0] < 20000)
        continue;
    int memory = open_memory(child);
    write_answer(memory, 4);
    while (cells[1] == 0)
        continue;
    write_answer(memory, 5);
    note("running", wait_stop(child));
    close(memory);
}

int main(void)
{
    cells = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    while_it_sleeps();
    while_it_runs();
    note("own", answer());
    return 0;
}
