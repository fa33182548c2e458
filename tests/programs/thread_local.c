/* what: thread-local variables of all models, with destructors of keys and pthread_once
 * build: -O2 -pthread
 * with: thread_local_library.c
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static _Thread_local int zeroed;
static _Thread_local char text[64] = "first";
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int destroyed, made;
static int *(*library_local)(void);

static void destroy(void *value) { __atomic_fetch_add(&destroyed, (int)(long)value, __ATOMIC_SEQ_CST); }
static void make_key(void) { made++; pthread_key_create(&key, destroy); }

static void *work(void *argument)
{
    long me = (long)argument;
    pthread_once(&once, make_key);
    pthread_setspecific(key, (void *)(me + 1));
    zeroed += (int)me;
    text[0] = (char)('a' + me);
    *library_local() += (int)me;
    return (void *)(long)(zeroed * 1000 + text[0] + strlen(text) + (unsigned)*library_local());
}

int main(int argc, char **argv)
{
    (void)argc;
    char path[4096];
    const char *slash = strrchr(argv[0], '/');
    snprintf(path, sizeof path, "%.*s/thread_local_library.so", slash == NULL ? 1 : (int)(slash - argv[0]), slash == NULL ? "." : argv[0]);
    void *library = dlopen(path, RTLD_NOW);
    if (library == NULL)
        return 1;
    library_local = (int *(*)(void))dlsym(library, "library_local");
    long sum = 0;
    for (long i = 0; i < 8; i++) {
        pthread_t thread;
        void *result;
        pthread_create(&thread, NULL, work, (void *)i);
        pthread_join(thread, &result);
        sum += (long)result;
    }
    printf("%ld %d %d %s %d %d\n", sum, zeroed, made, text, destroyed, *library_local());
    return 0;
}
