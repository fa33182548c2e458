/* what: a breakpoint instruction without a debugger ends the program
 * build: -O1
 * status: SIGTRAP
 */
int main(void)
{
    __asm__ volatile("int3");
    return 0;
}
