/* libc's qsort with a comparison in the program: callbacks out of a library. */
#include <stdio.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000000;
    unsigned *numbers = malloc(count * sizeof *numbers), seed = 1;
    if (numbers == NULL)
        return 1;
    for (size_t i = 0; i < count; i++)
        numbers[i] = seed = seed * 1664525 + 1013904223;
    qsort(numbers, count, sizeof *numbers, compare);
    unsigned long sum = 0;
    for (size_t i = 0; i < count; i++)
        sum = sum * 31 + numbers[i];
    printf("%lu\n", sum);
    return 0;
}
