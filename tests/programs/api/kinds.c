// Makes, uses and ends one thing of each of a few kinds, by functions of the C library.
#define _GNU_SOURCE
#include <netdb.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static void *work(void *gate) {
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return gate;
}

int main(void) {
    pthread_mutex_t gate;
    pthread_t thread;
    timer_t first, timer;
    struct sigevent none = {.sigev_notify = SIGEV_NONE};
    struct itimerspec later = {{0, 0}, {1000, 0}};
    struct addrinfo *found, hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct termios settings;

    pthread_mutex_init(&gate, NULL);
    pthread_create(&thread, NULL, work, &gate);
    pthread_setname_np(thread, "worker");
    pthread_join(thread, NULL);
    pthread_mutex_destroy(&gate);
    // The first one may be called 0, which is no handle.
    timer_create(CLOCK_MONOTONIC, &none, &first);
    timer_create(CLOCK_MONOTONIC, &none, &timer);
    timer_settime(timer, 0, &later, NULL);
    timer_delete(timer);
    if (getaddrinfo("127.0.0.1", "80", &hints, &found) == 0) {
        freeaddrinfo(found);
    }
    int is_there = getpwnam("root") != NULL;
    tcgetattr(0, &settings);
    return is_there && isatty(0) ? 1 : 0;
}
