/* Calls a function for each line, twenty times, and says the sum by one system call. `strict` has it make no others from
   then on but read, write and _exit, by prctl(2): whoever makes another one is killed. `clockless` has it read no time
   stamp counter from then on. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/seccomp.h>

__attribute__((noipa)) long worked(long a, const char *text) { return a * 3 + (text[a] & 1); }

int main(void)
{
    char line[64], text[64];
    if (write(1, "ready\n", 6) != 6) return 1;
    for (ssize_t size; (size = read(0, line, sizeof line)) > 0;) {
        if (!strncmp(line, "strict", 6)) prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
        if (!strncmp(line, "clockless", 9)) prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
        long sum = 0;
        for (long n = 0; n < 20; n++) sum = sum * 3 + worked(n, "to and fro, and once more");
        int length = sprintf(text, "%ld\n", sum);
        if (write(1, text, length) != length) return 1;
    }
    syscall(SYS_exit, 0);
    return 0;
}
