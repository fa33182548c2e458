/* One of two libraries of the same size and layout that library_reuse loads in turn. */
int work(int x);
int by_table(int x);

static int double_it(int x) { return 2 * x; }
static int add_one(int x) { return x + 1; }
static int (*const table[])(int) = {double_it, add_one, work};

int work(int x) { return x * 3 + 5; }
int by_table(int x) { return table[x % 3](x); }
