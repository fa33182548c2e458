/* Loads a library again and again, each time at another place, and calls it; makes code by itself and calls that.
   `load`: loads the library, calls `shared_work` ten times, unloads it, and puts something else where it was;
   `kept`: whether that is all there still;
   `made`: makes a function and says where it is;
   `call N`: calls that so often;
   `allocate N`: calls malloc, realloc and free so often with a size that nobody else asks for, in four threads. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_LOADED 16
#define SIZE 54321

static struct { unsigned char *start; size_t size; } left[MAX_LOADED];
static int n_left;
static long (*made)(long);
static const char *library;

static void load(void)
{
    void *handle = dlopen(library, RTLD_NOW);
    if (handle == NULL) exit(1);
    long (*work)(long) = (long (*)(long))dlsym(handle, "shared_work");
    struct link_map *map;
    dlinfo(handle, RTLD_DI_LINKMAP, &map);
    unsigned char *start = (unsigned char *)map->l_addr;
    long sum = 0;
    for (long n = 0; n < 10; n++) sum += work(n);
    dlclose(handle);
    size_t size = 5 * 4096;
    if (mmap(start, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != start) exit(1);
    memset(start, 0x90, size);
    if (n_left == MAX_LOADED) exit(1);
    left[n_left].start = start, left[n_left++].size = size;
    printf("%ld\n", sum);
}

static int is_kept(void)
{
    for (int at = 0; at < n_left; at++)
        for (size_t n = 0; n < left[at].size; n++)
            if (left[at].start[n] != 0x90) return 0;
    return 1;
}

static void make(void)
{
    /* push rbp; mov rbp, rsp; lea rax, [rdi + rdi * 2]; xor eax, 5; cmp edi, 3; jl; add rax, 100; pop rbp; ret */
    static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x8d, 0x04, 0x7f, 0x83, 0xf0, 0x05, 0x83, 0xff,
                                         0x03, 0x7c, 0x04, 0x48, 0x83, 0xc0, 0x64, 0x5d, 0xc3};
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page + 64, code, sizeof code);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    made = (long (*)(long))(page + 64);
    printf("%p\n", (void *)made);
}

static void *allocate(void *number)
{
    long n_wrong = 0;
    for (long n = (long)number; n > 0; n--) {
        unsigned char *data = malloc(SIZE);
        data[0] = (unsigned char)n, data[SIZE - 1] = (unsigned char)n;
        data = realloc(data, 2 * SIZE);
        n_wrong += data[0] != (unsigned char)n || data[SIZE - 1] != (unsigned char)n;
        free(data);
    }
    return (void *)n_wrong;
}

int main(int argc, char **argv)
{
    char line[64];
    library = argc > 1 ? argv[1] : "";
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (!strcmp(line, "load\n")) load();
        else if (!strcmp(line, "kept\n")) printf("%d\n", is_kept());
        else if (!strcmp(line, "made\n")) make();
        else if (!strncmp(line, "call ", 5)) {
            long sum = 0;
            for (long n = 0; n < atol(line + 5); n++) sum = sum * 3 + made(n);
            printf("%ld\n", sum);
        } else {
            pthread_t threads[4];
            long sum = 0;
            for (int n = 0; n < 4; n++) pthread_create(&threads[n], NULL, allocate, (void *)atol(line + 9));
            for (int n = 0; n < 4; n++) {
                void *wrong;
                pthread_join(threads[n], &wrong);
                sum += (long)wrong;
            }
            printf("%ld\n", sum);
        }
        fflush(stdout);
    }
    return 0;
}
