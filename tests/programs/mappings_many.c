/* what: as many mappings as the kernel allows, and after that new code, signals, threads one after the other and together, a child, and a new program
 * build: -O1 -pthread
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_PAIRS = 70000, PAGE = 4096, N_THREADS = 4, STACK = 1 << 18 };

static volatile int n_signals;
static pthread_barrier_t all_there;

static void handler(int number)
{
    (void)number;
    n_signals++;
}

static int compare(const void *left, const void *right)
{
    return *(const int *)left - *(const int *)right;
}

static void *sort(void *numbers)
{
    qsort(numbers, 3, sizeof(int), compare);
    return numbers;
}

static void *meet(void *numbers)
{
    pthread_barrier_wait(&all_there);
    return sort(numbers);
}

int main(void)
{
    pthread_t threads[N_THREADS];
    pthread_attr_t attributes[N_THREADS];
    int numbers[N_THREADS][3], status;
    char text[64];
    char *stacks = mmap(NULL, N_THREADS * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *pages = mmap(NULL, MAX_PAIRS * 2ul * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pthread_barrier_init(&all_there, NULL, N_THREADS);
    for (int i = 0; i < N_THREADS; i++) {
        pthread_attr_init(&attributes[i]);
        pthread_attr_setstack(&attributes[i], stacks + i * STACK, STACK);
    }
    int n = 0;
    while (n < MAX_PAIRS && mprotect(pages + n * 2l * PAGE, PAGE, PROT_READ) == 0)
        n++;
    printf("%s\n", n == MAX_PAIRS ? "no limit" : strerror(errno));
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    snprintf(text, sizeof text, "%a %s %d", 1.5, strerror(EINTR), n_signals);
    puts(text);
    for (int turn = 0; turn < 3 * N_THREADS; turn++) {
        int *three = numbers[turn % N_THREADS];
        memcpy(three, (int[]){3, turn, 1}, sizeof numbers[0]);
        int error = pthread_create(&threads[0], &attributes[turn % N_THREADS], sort, three);
        printf("%d", error);
        if (error == 0)
            pthread_join(threads[0], NULL);
        printf(" %d%c", three[0], turn % N_THREADS == N_THREADS - 1 ? '\n' : ' ');
    }
    for (int i = 0; i < N_THREADS; i++) {
        memcpy(numbers[i], (int[]){i, 9, 2}, sizeof numbers[0]);
        if (pthread_create(&threads[i], &attributes[i], meet, numbers[i]) != 0)
            return 1;
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
        printf("%d ", numbers[i][1]);
    }
    printf("together\n");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        printf("child %g\n", 2.5);
        fflush(stdout);
        execlp("echo", "echo", "executed", NULL);
        _exit(1);
    }
    waitpid(child, &status, 0);
    munmap(pages, MAX_PAIRS * 2ul * PAGE);
    printf("%d %s\n", status, malloc(1 << 22) != NULL ? "room" : "no room");
    return 0;
}
