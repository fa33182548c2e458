/* what: signals that interrupt one branch with a near and a far target, the second reached through another piece of cache
 * build: -O1
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

#define NEAR 0x10000000000ul
#define FAR (NEAR + 0x76000000ul)
#define N_SIGNALS 300

static volatile int stop, n;

static void on_alarm(int number)
{
    (void)number;
    if (++n == N_SIGNALS)
        stop = 1;
}

static unsigned char *map(unsigned long address)
{
    return mmap((void *)address, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

int main(void)
{
    /* branch: mov rax, rsi; jmp rax; first: ret; second: cmp dword [rdi], 0; je branch; ret */
    static const unsigned char code[] = {0x48, 0x89, 0xf0, 0xff, 0xe0, 0xc3, 0x83, 0x3f, 0x00, 0x74, 0xf5, 0xc3};
    unsigned char *near = map(NEAR), *far = map(FAR);
    memcpy(near, code, sizeof code);
    far[0] = 0xc3;
    mprotect(near, 4096, PROT_READ | PROT_EXEC);
    mprotect(far, 4096, PROT_READ | PROT_EXEC);
    void (*branch)(volatile int *, void *) = (void (*)(volatile int *, void *))near;
    branch(&stop, near + 5);
    ((void (*)(void))far)();
    signal(SIGALRM, on_alarm);
    struct itimerval every = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &every, 0);
    branch(&stop, near + 6);
    setitimer(ITIMER_REAL, &(struct itimerval){0}, 0);
    printf("%d\n", n >= N_SIGNALS);
    return 0;
}
