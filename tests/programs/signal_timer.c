/* what: a timer of a millisecond of CPU time interrupts a loop 100 times; nothing is lost, every register survives
 * build: -O1
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

static volatile sig_atomic_t ticks;
static uint64_t noise[8];

static void tick(int number)
{
    (void)number;
    for (int i = 0; i < 8; i++)
        noise[i] = noise[i] * 6364136223846793005u + 1442695040888963407u;
    ticks++;
}

int main(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = tick;
    action.sa_flags = SA_RESTART;
    sigaction(SIGVTALRM, &action, NULL);
    struct itimerval every = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_VIRTUAL, &every, NULL);
    uint64_t expected = 0, rounds = 0;
    int wrong = 0;
    while (ticks < 100) {
        uint64_t a = 1, b = 2, c = 3, d = 4;
        for (int i = 0; i < 1000; i++) {
            a += b ^ c;
            b = b * 3 + d;
            c ^= a >> 7;
            d += (a < b) + (uint64_t)i;
        }
        uint64_t got = a ^ b ^ c ^ d;
        if (rounds++ == 0)
            expected = got;
        wrong += got != expected;
    }
    memset(&every, 0, sizeof every);
    setitimer(ITIMER_VIRTUAL, &every, NULL);
    printf("at least 100 ticks %d, wrong results %d\n", ticks >= 100, wrong);
    return 0;
}
