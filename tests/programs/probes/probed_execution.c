/* Calls a function three times, then goes on with another program, which is itself: there it calls it twice. The calls
   before come right in front of the execution. */
#include <unistd.h>

static volatile int sum;

__attribute__((noinline)) void work(int n)
{
    sum += n;
}

int main(int count, char **arguments)
{
    int turns = count > 1 ? 2 : 3;
    for (int n = 0; n < turns; n++)
        work(n);
    if (count > 1)
        return 0;
    execl(arguments[0], arguments[0], "again", (char *)0);
    return 1;
}
