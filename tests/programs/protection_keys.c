/* what: protection keys: wrpkru, rdpkru, pkey_mprotect, SEGV_PKUERR with the key, rights in handlers and after them, threads
 * build: -O1
 * needs: pku ospke
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include "note.h"

static sigjmp_buf back;
static char *page;

static unsigned rights(void)
{
    unsigned value;
    __asm__ volatile("xor %%ecx, %%ecx\n rdpkru" : "=a"(value) : : "ecx", "edx");
    return value;
}

static void handler(int number, siginfo_t *info, void *context)
{
    (void)context;
    note("signal", number);
    note("  code", info->si_code);
    note("  at the page", info->si_addr == page);
    note("  key", info->si_pkey);
    note("  rights", rights());
    siglongjmp(back, 1);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int key = pkey_alloc(0, 0);
    note("key", key);
    note("pkey_mprotect", pkey_mprotect(page, 4096, PROT_READ | PROT_WRITE, key));
    for (unsigned i = 0; i < 4; i++) {
        pkey_set(key, i % 3);
        if (sigsetjmp(back, 1) == 0) {
            note("read", *(volatile char *)page);
            *(volatile char *)page = (char)i;
            note("written", i);
        }
        note("rights", rights());
    }
    pkey_set(key, 0);
    return 0;
}
