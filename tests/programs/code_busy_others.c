/* what: code that ran often before it changes: written by a thread that blocks all signals, and by children, with frames of signals beside it, with SIGSEGV blocked; mappings stay as they were
 * build: -O1 -pthread
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "note.h"

enum { PAGES = 4, OFTEN = 600 };
#include "busy.h"

static volatile int turn;
static unsigned char *shared;

static void *write_it(void *argument)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    for (int i = 1; i <= 20; i++) {
        while (turn != 2 * i - 1)
            sched_yield();
        shared[2] = (unsigned char)i;
        turn = 2 * i;
    }
    return argument;
}

static void by_a_thread(void)
{
    pthread_t thread;
    shared = make(0, 1024, 0);
    turn = 0;
    pthread_create(&thread, NULL, write_it, NULL);
    long sum = 0;
    for (int i = 1; i <= 20; i++) {
        sum += often(shared);
        turn = 2 * i - 1;
        while (turn != 2 * i)
            sched_yield();
        sum = sum * 3 + ((function *)(uintptr_t)shared)(0);
    }
    pthread_join(thread, NULL);
    note("by a thread that blocks all signals", sum);
}

static void by_a_child(void)
{
    unsigned char *at = make(2, 2048, 1);
    note("before fork", often(at));
    pid_t child = fork();
    if (child == 0) {
        at[2] = 70;
        note("the child's", ((function *)(uintptr_t)at)(0));
        _exit(0);
    }
    waitpid(child, NULL, 0);
    note("the parent's", ((function *)(uintptr_t)at)(0));
    at[2] = 80;
    note("written there", ((function *)(uintptr_t)at)(0));
}

static void show_maps(void)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long start, end;
    char rights[8];
    while (fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "%lx-%lx %7s", &start, &end, rights) == 3 && start < (uintptr_t)(code + PAGES * PAGE) &&
            end > (uintptr_t)code) {
            note(rights, (long)(end - start));
        }
    fclose(maps);
}

static void on_stack_of_code(int number)
{
    note("handler on a page of code", number);
}

static void frames_beside_code(void)
{
    stack_t stack = {code, 0, 2 * PAGE}, none = {NULL, SS_DISABLE, 0};
    unsigned char *at = make(1, PAGE - 64, 6);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_stack_of_code;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    stack.ss_size = 2 * PAGE - 512;
    if (sigaltstack(&stack, NULL) == 0) {
        note("before the signal", often(at));
        raise(SIGUSR1);
        note("after it", often(at));
        sigaltstack(&none, NULL);
    } else {
        note("stack too small", 0);
    }
}

static volatile int n_handled;

static void on_sent(int number)
{
    (void)number;
    n_handled++;
}

/* SIGSEGV must reach the tracer while code is protected, whatever the program blocks. */
static void sent_and_blocked(void)
{
    unsigned char *at = make(3, 256, 1);
    struct sigaction action;
    sigset_t set, none;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_sent;
    sigaction(SIGSEGV, &action, NULL);
    sigemptyset(&none);
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    note("before it is sent", often(at));
    for (int i = 0; i < 3; i++) {
        sigprocmask(SIG_BLOCK, &set, NULL);
        raise(SIGSEGV);
        kill(getpid(), SIGSEGV);
        note("not handled yet", n_handled);
        at[2] = (unsigned char)(2 + i);
        note("written meanwhile", often(at));
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        note("handled", n_handled > i);
        n_handled = i + 1;
    }
}

int main(void)
{
    code = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    by_a_thread();
    show_maps();
    by_a_child();
    frames_beside_code();
    sent_and_blocked();
    return 0;
}
