/* what: waits in vfork for a child that waits for input
 * build: -O1
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    int status = -1;
    char byte = 0;
    puts("ready");
    fflush(stdout);
    pid_t child = vfork();
    if (child == 0)
        _exit(read(STDIN_FILENO, &byte, 1) == 1 ? 7 : 1);
    waitpid(child, &status, 0);
    puts(WIFEXITED(status) && WEXITSTATUS(status) == 7 ? "good" : "bad");
    return 0;
}
