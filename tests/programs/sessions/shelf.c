/* A library of things on a shelf, whose calls are described by a file of the test's own; and a program that uses it.
 *
 * Built with -DLIBRARY it is the library. The program loads it (words[1]) with dlopen, in two threads.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shelf {
    char label[16];
    long n_things;
};

#ifdef LIBRARY

struct shelf *shelf_open(const char *path, unsigned how)
{
    if (how & 4)
        return NULL;
    struct shelf *shelf = calloc(1, sizeof *shelf);
    strncpy(shelf->label, path, sizeof shelf->label - 1);
    return shelf;
}

long shelf_put(struct shelf *shelf, const void *bytes, unsigned long size, int where)
{
    (void)bytes;
    if (where < 0)
        return -1;
    shelf->n_things += (long)size;
    return (long)size;
}

/* Within itself: a call within a call, as deep as is asked for. */
int shelf_count(struct shelf *shelf, int depth) { return depth ? shelf_count(shelf, depth - 1) + 1 : (int)shelf->n_things; }

void shelf_close(struct shelf *shelf) { free(shelf); }

#else

static struct shelf *(*open_shelf)(const char *, unsigned);
static long (*put)(struct shelf *, const void *, unsigned long, int);
static int (*count)(struct shelf *, int);
static void (*close_shelf)(struct shelf *);

static void *use(void *name)
{
    struct shelf *shelf = open_shelf(name, 1 | 2);
    put(shelf, "one\0two", 7, 3);
    put(shelf, "lost", 4, -1);
    long n = count(shelf, 3);
    close_shelf(shelf);
    return (void *)n;
}

int main(int n_words, char **words)
{
    void *library = n_words > 1 ? dlopen(words[1], RTLD_NOW) : NULL;
    if (library == NULL)
        return 2;
    open_shelf = dlsym(library, "shelf_open"), put = dlsym(library, "shelf_put");
    count = dlsym(library, "shelf_count"), close_shelf = dlsym(library, "shelf_close");
    pthread_t other;
    void *result;
    if (pthread_create(&other, NULL, use, "/shelf/other"))
        return 2;
    long n = (long)use("/shelf/one");
    pthread_join(other, &result);
    open_shelf("/shelf/none", 4);
    printf("%ld %ld\n", n, (long)result);
    return 0;
}

#endif
