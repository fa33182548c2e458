/* what: raise of a signal without a handler, from a callee
 * build: -O1
 * status: SIGTERM
 * traits: oracle
 */
#include <signal.h>
#include "note.h"
int main(void)
{
    note("before", 1);
    raise(SIGTERM);
    note("after", 1);
    return 0;
}
