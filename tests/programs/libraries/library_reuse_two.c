/* The other of two libraries of the same size and layout that library_reuse loads in turn. */
int work(int x);
int by_table(int x);

static int subtract(int x) { return x - 7; }
static int square(int x) { return x * x; }
static int (*const table[])(int) = {work, square, subtract};

int work(int x) { return (x ^ 21) * 9; }
int by_table(int x) { return table[x % 3](x); }
