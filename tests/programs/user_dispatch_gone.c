/* what: syscall user dispatch with a selector that is not there any more: SIGSEGV, whatever its handler
 * build: -O1
 * status: SIGSEGV
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include "note.h"

static void handler(int number) { (void)number; }

int main(void)
{
    char *selector = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    signal(SIGSEGV, handler);
    note("on", prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, selector));
    munmap(selector, 4096);
    note("still there", 1);
    return 0;
}
