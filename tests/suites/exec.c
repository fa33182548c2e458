/* execve and execveat: errors, what a new program keeps of the process and what it does not. */
#include "cases.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>

extern char **environ;

static char *const no_words[] = {NULL};

/* Runs this program again, as a child of the case; the new program checks itself (`steps`) and gives 42. */
static long run_again(const char *step)
{
    pid_t child = fork();
    if (child == 0) {
        char *words[] = {"again", "--step", (char *)step, NULL};
        execve("/proc/self/exe", words, environ);
        _exit(99);
    }
    return ended(child);
}

static int file_with(const char *path, const void *bytes, size_t length, mode_t mode)
{
    unlink(path);
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, mode);
    int is_written = file >= 0 && write(file, bytes, length) == (ssize_t)length;
    close(file);
    return is_written;
}

static char folder[64];

static int enter_folder(void)
{
    strcpy(folder, "/tmp/exec.XXXXXX");
    return mkdtemp(folder) && chdir(folder) == 0;
}

static void leave_folder(void)
{
    EXPECT(chdir("/"), 0);
    EXPECT(rmdir(folder), 0);
}

static void missing_files(void)
{
    char longest[5000];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = 0;
    EXPECT_ERROR(execve("/no/such/program", no_words, environ), ENOENT);
    EXPECT_ERROR(execve("", no_words, environ), ENOENT);
    EXPECT_ERROR(execve("/proc/self/exe/below", no_words, environ), ENOTDIR);
    EXPECT_ERROR(execve(longest, no_words, environ), ENAMETOOLONG);
    EXPECT_ERROR(execve("/tmp", no_words, environ), EACCES);
}

static void bad_addresses(void)
{
    EXPECT_ERROR(syscall(SYS_execve, NOWHERE, no_words, environ), EFAULT);
    EXPECT_ERROR(syscall(SYS_execve, "/proc/self/exe", NOWHERE, environ), EFAULT);
    EXPECT_ERROR(syscall(SYS_execve, "/proc/self/exe", no_words, NOWHERE), EFAULT);
    char *words[] = {"a", NOT_CANONICAL, NULL};
    EXPECT_ERROR(execve("/proc/self/exe", words, environ), EFAULT);
}

static void too_much(void)
{
    size_t length = 33 * PAGE;
    char *word = pages(33, PROT_READ | PROT_WRITE);
    memset(word, 'x', length - 1);
    char *words[] = {word, NULL};
    EXPECT_ERROR(execve("/proc/self/exe", words, environ), E2BIG);
}

static void no_program(void)
{
    EXPECT_TRUE(enter_folder());
    EXPECT_TRUE(file_with("plain", "words", 5, 0644) && file_with("text", "words\n", 6, 0755));
    EXPECT_TRUE(file_with("empty", "", 0, 0755) && file_with("elf", "\177ELF", 4, 0755));
    EXPECT_TRUE(file_with("lost", "#!/no/such/program\n", 19, 0755) && file_with("bare", "#!\n", 3, 0755));
    EXPECT_ERROR(execve("plain", no_words, environ), EACCES);
    EXPECT_ERROR(execve("text", no_words, environ), ENOEXEC);
    EXPECT_ERROR(execve("empty", no_words, environ), ENOEXEC);
    EXPECT_ERROR(execve("elf", no_words, environ), ENOEXEC);
    EXPECT_ERROR(execve("lost", no_words, environ), ENOENT);
    EXPECT_ERROR(execve("bare", no_words, environ), ENOEXEC);
    static const char *const made[] = {"plain", "text", "empty", "elf", "lost", "bare"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        EXPECT(unlink(made[i]), 0);
    leave_folder();
}

static void scripts(void)
{
    EXPECT_TRUE(enter_folder());
    EXPECT_TRUE(file_with("script", "#!/bin/sh -e\nexit $(($# + 30))\n", 31, 0755));
    pid_t child = fork();
    if (child == 0) {
        char *words[] = {"script", "one", "two", NULL};
        execve("./script", words, environ);
        _exit(99);
    }
    EXPECT(ended(child), 32);
    unlink("script");
    leave_folder();
}

static void script_of_itself(void)
{
    char line[100];
    EXPECT_TRUE(enter_folder());
    snprintf(line, sizeof line, "#!%s/loop\n", folder);
    EXPECT_TRUE(file_with("loop", line, strlen(line), 0755));
    EXPECT_ERROR(execve("./loop", no_words, environ), ELOOP);
    unlink("loop");
    leave_folder();
}

static void links_in_circles(void)
{
    EXPECT_TRUE(enter_folder());
    EXPECT(symlink("one", "two") | symlink("two", "one"), 0);
    EXPECT_ERROR(execve("./one", no_words, environ), ELOOP);
    EXPECT(unlink("one") | unlink("two"), 0);
    leave_folder();
}

static void by_descriptor_errors(void)
{
    EXPECT_ERROR(syscall(SYS_execveat, 900, "x", no_words, environ, 0), EBADF);
    EXPECT_ERROR(syscall(SYS_execveat, 900, "", no_words, environ, AT_EMPTY_PATH), EBADF);
    EXPECT_ERROR(syscall(SYS_execveat, AT_FDCWD, "", no_words, environ, 0), ENOENT);
    EXPECT_ERROR(syscall(SYS_execveat, AT_FDCWD, "/bin/sh", no_words, environ, 0x40000000), EINVAL);
    EXPECT_ERROR(syscall(SYS_execveat, AT_FDCWD, "/proc/self/exe", no_words, environ, AT_SYMLINK_NOFOLLOW), ELOOP);
    int folder_descriptor = open("/tmp", O_RDONLY | O_DIRECTORY);
    EXPECT_ERROR(syscall(SYS_execveat, folder_descriptor, "", no_words, environ, AT_EMPTY_PATH), EACCES);
    EXPECT_ERROR(syscall(SYS_execveat, 1, "x", no_words, environ, 0), ENOTDIR);
}

static void by_descriptor(void)
{
    pid_t child = fork();
    if (child == 0) {
        char *words[] = {"again", "--step", "plain", NULL};
        int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        syscall(SYS_execveat, file, "", words, environ, AT_EMPTY_PATH);
        _exit(99);
    }
    EXPECT(ended(child), 42);
}

static void *exec_in_thread(void *unused)
{
    char *words[] = {"again", "--step", "leader", NULL};
    execve("/proc/self/exe", words, environ);
    return unused;
}

static void by_other_thread(void)
{
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, exec_in_thread, NULL);
        for (;;)
            pause();
    }
    EXPECT(ended(child), 42);
}

static void in_vfork(void)
{
    pid_t child = vfork();
    if (child == 0) {
        char *words[] = {"again", "--step", "plain", NULL};
        execve("/proc/self/exe", words, environ);
        _exit(99);
    }
    EXPECT(ended(child), 42);
}

static void descriptors_kept(void)
{
    EXPECT(dup2(1, 50), 50);
    EXPECT(dup3(1, 51, O_CLOEXEC), 51);
    EXPECT(run_again("descriptors"), 42);
}

static void note(int number)
{
    (void)number;
}

static void signals_kept(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    signal(SIGHUP, SIG_IGN);
    signal(SIGUSR2, note);
    sigprocmask(SIG_BLOCK, &set, NULL);
    EXPECT(run_again("signals"), 42);
}

static void waiting_signal_kept(void)
{
    pid_t child = fork();
    if (child == 0) {
        char *words[] = {"again", "--step", "waiting", NULL};
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        sigprocmask(SIG_BLOCK, &set, NULL);
        raise(SIGUSR1);
        execve("/proc/self/exe", words, environ);
        _exit(99);
    }
    EXPECT(ended(child), 42);
}

static void alternate_stack_gone(void)
{
    static char memory[65536];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    EXPECT(sigaltstack(&stack, NULL), 0);
    EXPECT(run_again("stack"), 42);
}

static void timer_kept(void)
{
    pid_t child = fork();
    if (child == 0) {
        char *words[] = {"again", "--step", "timer", NULL};
        struct itimerval once = {.it_value = {.tv_sec = 1000}};
        setitimer(ITIMER_REAL, &once, NULL);
        execve("/proc/self/exe", words, environ);
        _exit(99);
    }
    EXPECT(ended(child), 42);
}

static void mask_of_files_kept(void)
{
    umask(0135);
    EXPECT(run_again("umask"), 42);
}

static void no_new_rights(void)
{
    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    EXPECT(run_again("rights"), 42);
}

static void name_is_new(void)
{
    EXPECT(prctl(PR_SET_NAME, "something", 0, 0, 0), 0);
    EXPECT(run_again("name"), 42);
}

static void environment_given(void)
{
    pid_t child = fork();
    if (child == 0) {
        char *words[] = {"again", "--step", "environment", NULL}, *values[] = {"ONE=1", "EMPTY=", "odd", NULL};
        execve("/proc/self/exe", words, values);
        _exit(99);
    }
    EXPECT(ended(child), 42);
}

static void chain(void)
{
    EXPECT(run_again("chain9"), 42);
}

static int step_signals(void)
{
    sigset_t mask;
    struct sigaction ignored, handled;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    sigaction(SIGHUP, NULL, &ignored);
    sigaction(SIGUSR2, NULL, &handled);
    return sigismember(&mask, SIGUSR1) && ignored.sa_handler == SIG_IGN && handled.sa_handler == SIG_DFL;
}

/* What the new program sees of the old one's process: whether it is right. */
static int is_step_right(const char *step)
{
    sigset_t set;
    stack_t stack;
    struct itimerval left;
    char name[20] = "";
    if (strcmp(step, "plain") == 0)
        return 1;
    if (strcmp(step, "leader") == 0)
        return gettid() == getpid();
    if (strcmp(step, "descriptors") == 0)
        return fcntl(50, F_GETFD) == 0 && fcntl(51, F_GETFD) == -1 && errno == EBADF;
    if (strcmp(step, "signals") == 0)
        return step_signals();
    if (strcmp(step, "waiting") == 0)
        return sigpending(&set) == 0 && sigismember(&set, SIGUSR1);
    if (strcmp(step, "stack") == 0)
        return sigaltstack(NULL, &stack) == 0 && stack.ss_flags == SS_DISABLE;
    if (strcmp(step, "timer") == 0)
        return getitimer(ITIMER_REAL, &left) == 0 && left.it_value.tv_sec > 900;
    if (strcmp(step, "umask") == 0)
        return umask(0) == 0135;
    if (strcmp(step, "rights") == 0)
        return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
    if (strcmp(step, "name") == 0)
        return prctl(PR_GET_NAME, name, 0, 0, 0) == 0 && strcmp(name, "something") != 0;
    if (strcmp(step, "environment") == 0)
        return environ[0] && strcmp(environ[0], "ONE=1") == 0 && strcmp(environ[2], "odd") == 0 && !environ[3];
    return 0;
}

static int run_step(const char *step)
{
    if (strncmp(step, "chain", 5) == 0 && step[5] > '0') {
        char next[] = "chain0", *words[] = {"again", "--step", next, NULL};
        next[5] = (char)(step[5] - 1);
        execve("/proc/self/exe", words, environ);
    }
    return strcmp(step, "chain0") == 0 || is_step_right(step) ? 42 : 43;
}

static const struct one_case cases[] = {
    CASE(missing_files),       CASE(bad_addresses),    CASE(too_much),      CASE(no_program),
    CASE(scripts),             CASE(script_of_itself), CASE(links_in_circles), CASE(by_descriptor_errors),
    CASE(by_descriptor),       CASE(by_other_thread),  CASE(in_vfork),      CASE(descriptors_kept),
    CASE(signals_kept),        CASE(waiting_signal_kept), CASE(alternate_stack_gone), CASE(timer_kept),
    CASE(mask_of_files_kept),  CASE(no_new_rights),    CASE(name_is_new),   CASE(environment_given),
    CASE(chain),
};

int main(int count, char **arguments)
{
    if (count == 3 && strcmp(arguments[1], "--step") == 0)
        return run_step(arguments[2]);
    return RUN_CASES(cases, arguments + 1);
}
