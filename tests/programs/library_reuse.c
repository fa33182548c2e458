/* what: two libraries in turn at the same address: dlclose, address reuse, other code there; calls by symbols and by old addresses
 * build: -O1 -rdynamic
 * with: library_reuse_one.c library_reuse_two.c
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <libgen.h>
#include <unistd.h>

int main(void)
{
    char path[4096], name[4200];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    path[size] = '\0';
    const char *folder = dirname(path);
    static const char *const libraries[] = {"library_reuse_one.so", "library_reuse_two.so"};
    void *places[2] = {NULL, NULL};
    int same = 0;
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "%s/%s", folder, libraries[i % 2]);
        void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) {
            puts(dlerror());
            return 1;
        }
        int (*work)(int) = (int (*)(int))dlsym(library, "work");
        int (*table)(int) = (int (*)(int))dlsym(library, "by_table");
        long sum = 0;
        for (int j = 0; j < 20; j++)
            sum = sum * 7 + work(j) + table(j);
        if (i < 4)
            printf("%s: %ld\n", libraries[i % 2], sum);
        else if (sum == 0)
            return 2;
        Dl_info info;
        dladdr((void *)work, &info);
        same += i > 1 && places[i % 2] == info.dli_fbase && places[0] == places[1];
        places[i % 2] = info.dli_fbase;
        dlclose(library);
    }
    printf("reused %d\n", same > 10);
    return 0;
}
