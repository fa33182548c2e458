/* A library with a constructor, which calls the same function. */
static long n_called;

__attribute__((noipa)) long shared_work(long n)
{
    n_called++;
    return n * 7 + n_called;
}

__attribute__((constructor)) static void begin(void) { shared_work(100); }
