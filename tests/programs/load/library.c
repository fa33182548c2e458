/* Loaded and unloaded again and again. */
int library_work(int x, int (*callback)(int));
int library_work(int x, int (*callback)(int)) { return callback(x) * 10; }
