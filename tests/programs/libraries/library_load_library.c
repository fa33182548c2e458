/* Loaded and unloaded again and again. */
#include <stdio.h>
static int loaded;
int work(int x, int (*callback)(int));
__attribute__((constructor)) static void load(void) { loaded = 5; }
__attribute__((destructor)) static void unload(void) { puts("unloaded"); }
int work(int x, int (*callback)(int)) { return callback(x) * 10 + loaded++; }
