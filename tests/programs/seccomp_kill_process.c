/* what: a filter that kills the process for a call that the runtime makes itself, too
 * status: SIGSYS
 */
#include <sys/mman.h>
#include "filter.h"
#include "note.h"

int main(void)
{
    note("installed", filter_one(SYS_mprotect, SECCOMP_RET_KILL_PROCESS));
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    note("mapped", page != MAP_FAILED);
    mprotect(page, 4096, PROT_READ);
    note("still there", 1);
    return 0;
}
