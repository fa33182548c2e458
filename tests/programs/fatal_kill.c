/* what: the program kills itself with the signal that nobody can catch
 * build: -O1
 * status: SIGKILL
 */
#include <signal.h>
#include "note.h"
int main(void)
{
    note("before", 1);
    kill(getpid(), SIGKILL);
    note("after", 1);
    return 0;
}
