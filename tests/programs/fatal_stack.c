/* what: recursion without end
 * build: -O0
 * status: SIGSEGV
 */
static int dive(volatile int n) { return dive(n + 1) + n; }
int main(void)
{
    return dive(0);
}
