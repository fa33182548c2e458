// what: C++ exceptions thrown out of handlers of SIGSEGV, SIGFPE and SIGBUS, over frames with destructors
// build: -O1 -fnon-call-exceptions -fno-stack-protector
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

struct Fault {
    int number, code;
};

struct Guard {
    const char *name;
    ~Guard() { std::printf("destroyed %s\n", name); }
};

static char *const page = static_cast<char *>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

static void handler(int number, siginfo_t *info, void *)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
    throw Fault{number, info->si_code};
}

[[gnu::noinline]] static int divide(volatile int *by)
{
    Guard guard{"divide"};
    return 100 / *by;
}

[[gnu::noinline]] static int read_from(volatile char *where)
{
    Guard guard{"read"};
    return *where;
}

[[gnu::noinline]] static int outer(int what)
{
    Guard guard{"outer"};
    std::string text(100, 'x');
    volatile int zero = 0;
    switch (what) {
    case 0: return divide(&zero);
    case 1: return read_from(page);
    case 2: return read_from(nullptr);
    default: zero = 7; return divide(&zero) + static_cast<int>(text.size());
    }
}

int main()
{
    struct sigaction action {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGFPE, &action, nullptr);
    sigaction(SIGBUS, &action, nullptr);
    for (int i = 0; i < 12; i++) {
        try {
            std::printf("result %d\n", outer(i % 4));
        } catch (const Fault &fault) {
            std::printf("caught signal %d code %d\n", fault.number, fault.code);
        }
    }
    try {
        try {
            outer(1);
        } catch (const Fault &fault) {
            outer(fault.number == SIGSEGV ? 0 : 3);
        }
    } catch (const Fault &fault) {
        std::printf("a fault in a catch block: %d\n", fault.number);
    }
}
