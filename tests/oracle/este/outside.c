/* What este's program calls outside of itself. Stripped: only what is exported has a name. */
typedef long function(long);

static long twice(long a)
{
    return a * 2;
}

static long less(long a)
{
    return a - 1;
}

static long ask(long call, long a, long b)
{
    long result;
    asm volatile("syscall" : "=a"(result) : "a"(call), "D"(a), "S"(b) : "rcx", "r11", "memory");
    return result;
}

long outside_add(long a)
{
    return a + 1;
}

/* Comes back into the program, as often as is said. */
long outside_call_back(function *callback, long n)
{
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += callback(i);
    return sum;
}

function *outside_choose(long n)
{
    return n & 1 ? twice : less;
}

/* Nobody calls it. */
long outside_never(long a)
{
    return a * 5;
}

/* The program's handler runs while this does. */
long outside_signal(long number)
{
    return ask(62, ask(39, 0, 0), number);
}
