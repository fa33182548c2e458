/* Makes system calls that it is told of, each in a child of its own, and prints what each came to.

   A line of its input is a number and six arguments: numbers, B (an address where nothing is), G (one where there is a
   page of zeros) or F (a descriptor of an empty file); a + behind the number says that the call may wait for ever, and
   is to be interrupted. A line of its output is the result, or what ended the child instead. Who is root is nobody
   first, so that no call changes the machine; arguments that would harm somebody are for who calls it to leave out. */
#define _GNU_SOURCE
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534
#define NOT_BACK (-100000L)

static volatile long *result;
static char *page;

static void handle(int signal) { (void)signal; }

/* No word of the stack is used in between: a child that this makes may share it, or have none. */
static long call(long number, const long *arguments, int makes_tasks) {
    register long r10 __asm__("r10") = arguments[3];
    register long r8 __asm__("r8") = arguments[4];
    register long r9 __asm__("r9") = arguments[5];
    register long ends __asm__("r12") = makes_tasks;
    __asm__ volatile(
        "syscall\n\t"
        "test %%rax, %%rax\n\t"
        "jnz 1f\n\t"
        "test %%r12, %%r12\n\t"
        "jz 1f\n\t"
        "xor %%edi, %%edi\n\t"
        "mov %[exit], %%eax\n\t"
        "syscall\n"
        "1:"
        : "+a"(number)
        : "D"(arguments[0]), "S"(arguments[1]), "d"(arguments[2]), "r"(r10), "r"(r8), "r"(r9), "r"(ends),
          [exit] "i"(SYS_exit)
        : "rcx", "r11", "memory");
    return number;
}

static long argument(const char *word, int file) {
    switch (*word) {
    case 'B': return -4096;
    case 'G': return (long)page;
    case 'F': return file;
    default: return strtol(word, NULL, 0);
    }
}

static int makes_tasks(long number) {
    return number == SYS_fork || number == SYS_vfork || number == SYS_clone || number == SYS_clone3;
}

static void run(long number, const long *arguments, int waits) {
    struct itimerval soon = {{0, 20000}, {0, 20000}};
    if (waits) setitimer(ITIMER_REAL, &soon, NULL);
    long found = call(number, arguments, makes_tasks(number));
    if (makes_tasks(number) && found > 0) syscall(SYS_wait4, (int)found, NULL, __WALL, NULL);
    *result = found;
    _exit(0);
}

int main(void) {
    char line[512];
    struct sigaction action = {.sa_handler = handle};
    if (geteuid() == 0 && (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
        return 1;
    sigaction(SIGALRM, &action, NULL);
    result = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    setvbuf(stdout, NULL, _IONBF, 0);
    while (fgets(line, sizeof line, stdin)) {
        long arguments[6] = {0};
        char *word = strtok(line, " \n");
        long number = atol(word);
        int waits = strchr(word, '+') != NULL, status, file = memfd_create("file", 0);
        for (int place = 0; place < 6; place++) arguments[place] = argument(strtok(NULL, " \n"), file);
        *result = NOT_BACK;
        pid_t child = fork();
        if (child == 0) run(number, arguments, waits);
        waitpid(child, &status, 0);
        if (*result != NOT_BACK) {
            printf("%ld %ld\n", number, *result);
        } else if (WIFSIGNALED(status)) {
            printf("%ld signal %d\n", number, WTERMSIG(status));
        } else {
            printf("%ld exit %d\n", number, WEXITSTATUS(status));
        }
        close(file);
    }
    return 0;
}
