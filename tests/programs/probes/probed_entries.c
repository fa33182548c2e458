/* Calls whose arguments are gone when they return, also within each other; what they were is said, for each in the order in which they return:
 * the argument, the count and the name of the box, the result. */
#include <stdio.h>

struct box {
    int count;
    const char *name;
};

static const char *const names[] = {"first", "second", "third"};

__attribute__((noipa)) long work(long n, struct box *box, double share)
{
    long before = n;
    int count = box->count;
    const char *name = box->name;
    box->count += (int)n;
    box->name = names[box->count % 3];
    long result = n * 10 + (long)share;
    if (n % 2 == 1)
        result += work(n - 1, box, share * 2);
    n = 0, share = 0;
    printf("%ld %d %s %ld\n", before, count, name, result);
    return result;
}

int main(void)
{
    struct box box = {1, names[1]};
    for (long n = 0; n < 6; n++) work(n, &box, 1.5);
    return 0;
}
