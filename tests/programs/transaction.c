/* what: a transaction that aborts, and goes on at the abort address with the registers from before
 * build: -O1 -mrtm
 * needs: rtm
 */
#include <immintrin.h>
#include <stdio.h>

int main(void)
{
    int aborted = 0, committed = 0;
    volatile int cell = 0;
    for (int i = 0; i < 100; i++) {
        unsigned status = _xbegin();
        if (status == _XBEGIN_STARTED) {
            cell++;
            _xabort(0x42);
        } else {
            aborted++;
            if ((status & _XABORT_EXPLICIT) == 0)
                committed += 0;
        }
    }
    printf("%d aborted, cell %d\n", aborted, cell);
    return committed;
}
