/* what: an undefined instruction ends the program
 * build: -O1
 * status: SIGILL
 */
int main(void)
{
    __builtin_trap();
}
