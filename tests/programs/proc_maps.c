/* what: the kernel's list of mappings: as many, with the rights and names that they have; made, changed and found in it
 * build: -O1 -pthread
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char text[1 << 20];

static size_t read_file(const char *path)
{
    size_t length = 0;
    printf("%s\n", path);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t n; (n = read(file, text + length, sizeof text - 1 - length)) > 0;)
        length += (size_t)n;
    text[length] = '\0';
    close(file);
    return length;
}

static void show(const char *path, uintptr_t wanted)
{
    int lines = 0;
    read_file(path);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        unsigned long start, end;
        char rights[5], name[256] = "";
        if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %255[^\n]", &start, &end, rights, name) < 3)
            continue;
        /* What is only reserved, and nothing of it used: a tool that runs beside the program may have that. */
        if (end - start > 1ul << 32 && strcmp(rights, "---p") == 0)
            continue;
        char *last = strrchr(name, '/');
        printf("%s %s%s\n", rights, last != NULL ? last : name, start <= wanted && wanted < end ? " here" : "");
        lines++;
    }
    printf("%d mappings\n", lines);
}

static void *thread_main(void *opaque)
{
    show("/proc/thread-self/maps", (uintptr_t)opaque);
    return NULL;
}

int main(void)
{
    static const char *const others[] = {"/proc/self/smaps", "/proc/self/numa_maps"};
    char path[64];
    pthread_t thread;
    setvbuf(stdout, NULL, _IOLBF, 1 << 16);
    show("/proc/self/maps", (uintptr_t)show);
    char *pages = mmap(NULL, 5 * 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + 4096, 4096, PROT_READ | PROT_EXEC);
    mprotect(pages + 3 * 4096, 4096, PROT_NONE);
    pages[4096 * 2] = (char)0xc3;
    ((void (*)(void))(pages + 4096 * 2))();
    snprintf(path, sizeof path, "/proc/%d/maps", (int)getpid());
    FILE *maps = fopen(path, "r");
    char line[512];
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long start, end;
        char rights[5];
        if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) == 3 && end > (uintptr_t)pages
            && start < (uintptr_t)pages + 5 * 4096)
            printf("%ld pages at %ld %s\n", (long)(end - start) / 4096, (long)(start - (uintptr_t)pages) / 4096, rights);
    }
    fclose(maps);
    show("/proc/self/smaps", (uintptr_t)pages);
    for (int i = 0; i < 2; i++) {
        int n = 0;
        read_file(others[i]);
        for (char *at = text; (at = strchr(at, '\n')) != NULL; at++)
            n++;
        printf("%d lines\n", n);
    }
    pthread_create(&thread, NULL, thread_main, pages);
    pthread_join(thread, NULL);
    return 0;
}
