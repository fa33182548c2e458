/* what: waits in vfork for a child that waits for input; with an argument, waits for input before
 * build: -O1
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    (void)argv;
    int status = -1;
    char byte = 0;
    puts("ready");
    fflush(stdout);
    if (argc > 1 && read(STDIN_FILENO, &byte, 1) != 1)
        return 1;
    pid_t child = vfork();
    if (child == 0)
        _exit(read(STDIN_FILENO, &byte, 1) == 1 ? 7 : 1);
    waitpid(child, &status, 0);
    puts(WIFEXITED(status) && WEXITSTATUS(status) == 7 ? "good" : "bad");
    return 0;
}
