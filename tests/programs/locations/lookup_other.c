/* Has a function of its own of a name that lookup.c has, too. */
__attribute__((noinline)) static int shared_name(int n)
{
    return n * 11 + 2;
}

int other_work(int n)
{
    return shared_name(n) + shared_name(n + 1);
}
