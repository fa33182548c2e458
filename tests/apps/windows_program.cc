// A Windows program: registry, files, threads, faults that handlers mend, C++ exceptions through frames of its own.
// Prints the same every time. Built by MinGW-w64, run by Wine.
#include <windows.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

volatile LONG n_mended;

// Hot enough that its counts tell whether the program's own code was recorded.
extern "C" __attribute__((noinline)) unsigned clew_mix(unsigned x) { return x * 2654435761u ^ (x >> 7); }

LONG CALLBACK mend(EXCEPTION_POINTERS *what)
{
    if (what->ExceptionRecord->ExceptionCode != EXCEPTION_ACCESS_VIOLATION)
        return EXCEPTION_CONTINUE_SEARCH;
    // mov eax, [rcx]: over it.
    what->ContextRecord->Rip += 2;
    what->ContextRecord->Rax = 7;
    n_mended++;
    return EXCEPTION_CONTINUE_EXECUTION;
}

unsigned read_nothing()
{
    unsigned value;
    asm volatile("xor %%ecx, %%ecx\n .byte 0x8b, 0x01" : "=a"(value) : : "rcx");
    return value;
}

struct Guard {
    std::string &log;
    ~Guard() { log += 'g'; }
};

unsigned fall(unsigned depth, std::string &log)
{
    Guard guard{log};
    if (depth == 0)
        throw std::runtime_error("bottom");
    return fall(depth - 1, log) + 1;
}

void show_exceptions()
{
    std::string log;
    unsigned caught = 0;
    for (unsigned i = 0; i < 50; i++) {
        try {
            fall(i % 5, log);
        } catch (const std::runtime_error &error) {
            caught += (unsigned)strlen(error.what());
        }
    }
    printf("exceptions %u %u\n", caught, (unsigned)log.size());
}

void show_faults()
{
    void *handler = AddVectoredExceptionHandler(1, mend);
    unsigned sum = 0;
    for (int i = 0; i < 20; i++)
        sum += read_nothing();
    RemoveVectoredExceptionHandler(handler);
    printf("faults %u %ld\n", sum, (long)n_mended);
}

void show_registry()
{
    const char *path = "Software\\Trial";
    HKEY key;
    DWORD value = 0, size = sizeof value;
    if (RegCreateKeyA(HKEY_CURRENT_USER, path, &key) != ERROR_SUCCESS)
        puts("no key");
    for (DWORD i = 0; i < 10; i++) {
        char name[16];
        snprintf(name, sizeof name, "value%lu", (unsigned long)i);
        DWORD square = i * i;
        RegSetValueExA(key, name, 0, REG_DWORD, (const BYTE *)&square, sizeof square);
    }
    RegQueryValueExA(key, "value7", nullptr, nullptr, (BYTE *)&value, &size);
    RegCloseKey(key);
    LONG gone = RegDeleteKeyA(HKEY_CURRENT_USER, path);
    printf("registry %lu %ld\n", (unsigned long)value, gone);
}

void show_files()
{
    char folder[MAX_PATH], path[MAX_PATH];
    GetTempPathA(sizeof folder, folder);
    GetTempFileNameA(folder, "try", 0, path);
    FILE *file = fopen(path, "wb");
    for (unsigned i = 0; i < 5000; i++)
        fprintf(file, "%u\n", clew_mix(i));
    fclose(file);
    unsigned sum = 0, one;
    file = fopen(path, "rb");
    while (fscanf(file, "%u", &one) == 1)
        sum += one;
    fclose(file);
    printf("files %u %d\n", sum, DeleteFileA(path));
}

CRITICAL_SECTION section;
unsigned total;
thread_local unsigned own;

DWORD WINAPI work(void *seed)
{
    for (unsigned i = 0; i < 20000; i++) {
        own = clew_mix(own + (unsigned)(ULONG_PTR)seed + i);
        if (i % 100 == 0) {
            EnterCriticalSection(&section);
            total++;
            LeaveCriticalSection(&section);
        }
    }
    EnterCriticalSection(&section);
    total += own & 1023;
    LeaveCriticalSection(&section);
    return own;
}

void show_threads()
{
    InitializeCriticalSection(&section);
    std::vector<HANDLE> threads;
    for (ULONG_PTR i = 0; i < 4; i++)
        threads.push_back(CreateThread(nullptr, 0, work, (void *)i, 0, nullptr));
    WaitForMultipleObjects((DWORD)threads.size(), threads.data(), TRUE, INFINITE);
    for (HANDLE thread : threads)
        CloseHandle(thread);
    printf("threads %u\n", total);
}

LONG WINAPI last(EXCEPTION_POINTERS *what)
{
    printf("last %lx\n", (unsigned long)what->ExceptionRecord->ExceptionCode);
    fflush(stdout);
    ExitProcess(9);
}

}  // namespace

int main()
{
    show_registry();
    show_files();
    show_threads();
    show_faults();
    show_exceptions();
    fflush(stdout);
    SetUnhandledExceptionFilter(last);
    *(volatile int *)16 = 0;
    return 1;
}
