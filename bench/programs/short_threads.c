// Makes as many threads as its argument says, one after the other, each of which does next to nothing.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *add_one(void *total) {
    ++*(long *)total;
    return NULL;
}

int main(int argc, char **argv) {
    long total = 0;
    for (long left = argc > 1 ? atol(argv[1]) : 1; left > 0; left--) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, add_one, &total)) return 1;
        pthread_join(thread, NULL);
    }
    printf("%ld\n", total);
    return 0;
}
