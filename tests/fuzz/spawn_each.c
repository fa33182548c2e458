/* Executes each file that it is given in a child, one after the other, and says what became of it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **files) {
    for (int index = 1; index < count; index++) {
        static volatile int refused;
        int status = 0;
        refused = 0;
        pid_t child = vfork();
        if (child == 0) {
            execl(files[index], files[index], (char *)0);
            refused = errno;
            _exit(127);
        }
        waitpid(child, &status, 0);
        int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        printf("%s: errno %d, exit %d, signal %d\n", files[index], refused, signal ? 0 : WEXITSTATUS(status), signal);
    }
    return 0;
}
