/* what: dlopen and dlclose of a library, four times; its constructor and destructor, calls into it and callbacks out of it
 * build: -O1 -rdynamic
 * with: library_load_library.c
 * traits: oracle-long
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int callback(int x);
int callback(int x) { return x * 2 + 1; }

int main(int argc, char **argv)
{
    (void)argc;
    char path[4096];
    const char *slash = strrchr(argv[0], '/');
    snprintf(path, sizeof path, "%.*s/library_load_library.so", slash == NULL ? 1 : (int)(slash - argv[0]), slash == NULL ? "." : argv[0]);
    int sum = 0;
    for (int i = 0; i < 4; i++) {
        void *library = dlopen(path, i % 2 ? RTLD_NOW : RTLD_LAZY);
        if (library == NULL)
            return 1;
        int (*work)(int, int (*)(int)) = (int (*)(int, int (*)(int)))dlsym(library, "work");
        sum += work(i, callback);
        dlclose(library);
    }
    void *math = dlopen("libm.so.6", RTLD_LAZY);
    double (*cosine)(double) = (double (*)(double))dlsym(math, "cos");
    printf("%d %.6f %d\n", sum, cosine(1.0), dlopen("/no/such/library.so", RTLD_NOW) == NULL);
    return 0;
}
