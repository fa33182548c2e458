/*
 * Runs a command one instruction at a time and writes the registers in front of each instruction of a range of addresses.
 *
 *     register_stepper OUTPUT FIRST LAST COMMAND [ARGUMENT]...
 *
 * Shares nothing with what is tested: the kernel single-steps the command's first thread (PTRACE_SINGLESTEP). OUTPUT is one
 * `struct user_regs_struct` after the other. A signal is delivered, and its handler is stepped as all else.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <signal.h>

static void fail(const char *what)
{
    fprintf(stderr, "register_stepper: %s: %s\n", what, strerror(errno));
    exit(125);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fputs("usage: register_stepper OUTPUT FIRST LAST COMMAND [ARGUMENT]...\n", stderr);
        return 125;
    }
    FILE *output = fopen(argv[1], "wbe");
    uint64_t first = strtoull(argv[2], NULL, 0), last = strtoull(argv[3], NULL, 0);
    if (output == NULL)
        fail(argv[1]);
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(125);
        execvp(argv[4], argv + 4);
        _exit(127);
    }
    int status, deliver = 0;
    if (waitpid(pid, &status, 0) != pid)
        fail("waitpid");
    while (WIFSTOPPED(status)) {
        struct user_regs_struct registers;
        if (ptrace(PTRACE_GETREGS, pid, NULL, &registers) != 0)
            fail("registers");
        if (WSTOPSIG(status) == SIGTRAP && registers.rip >= first && registers.rip <= last &&
            fwrite(&registers, sizeof registers, 1, output) != 1)
            fail("write");
        deliver = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
        if (ptrace(PTRACE_SINGLESTEP, pid, NULL, (void *)(intptr_t)deliver) != 0)
            fail("step");
        if (waitpid(pid, &status, 0) != pid)
            fail("waitpid");
    }
    if (fclose(output) != 0)
        fail("write");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
