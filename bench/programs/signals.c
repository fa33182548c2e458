// Sends itself as many signals as its argument says, and counts them in a handler.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static volatile long n_handled;

static void handle(int number) {
    (void)number;
    n_handled++;
}

int main(int argc, char **argv) {
    signal(SIGUSR1, handle);
    for (long left = argc > 1 ? atol(argv[1]) : 1; left > 0; left--) raise(SIGUSR1);
    printf("%ld\n", n_handled);
    return 0;
}
