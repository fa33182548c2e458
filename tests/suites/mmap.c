/* mmap, munmap, mprotect, madvise, msync, mincore, mlock, brk, shmat and their like: what is where, and errors. */
#include "cases.h"
#include <fcntl.h>
#include <linux/memfd.h>
#include <setjmp.h>
#include <sys/ipc.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/uio.h>

#define READ_WRITE (PROT_READ | PROT_WRITE)
#define READ_EXECUTE (PROT_READ | PROT_EXEC)
#define OWN (MAP_PRIVATE | MAP_ANONYMOUS)
#define SYS_MSEAL 462

/* The system call itself: the library looks at offsets before the kernel does. */
static long map(void *place, size_t length, int protection, int flags, int file, unsigned long offset)
{
    return syscall(SYS_mmap, place, length, protection, flags, file, offset);
}

static int is_mapped(const void *address)
{
    unsigned char resident;
    return mincore((void *)address, PAGE, &resident) == 0;
}

static char *filled(size_t count)
{
    char *memory = pages(count, READ_WRITE);
    for (size_t i = 0; i < count; i++)
        memory[i * PAGE] = (char)('a' + i);
    return memory;
}

/* A file in memory of so many pages, each of which begins with its letter. */
static int file_of(size_t count)
{
    int file = memfd_create("mapped", 0);
    EXPECT(ftruncate(file, (off_t)(count * PAGE)), 0);
    for (size_t i = 0; i < count; i++) {
        char letter = (char)('a' + i);
        EXPECT(pwrite(file, &letter, 1, (off_t)(i * PAGE)), 1);
    }
    return file;
}

static char letter_of(int file, size_t page)
{
    char letter = 0;
    EXPECT(pread(file, &letter, 1, (off_t)(page * PAGE)), 1);
    return letter;
}

static sigjmp_buf back;
static siginfo_t told;

static void jump_back(int number, siginfo_t *info, void *context)
{
    (void)context;
    told = *info;
    siglongjmp(back, number);
}

static void catch_faults(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO, .sa_sigaction = jump_back};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

enum access { READS, WRITES, CALLS };

/* The signal that an access ends with, 0 for none; `told` says more of it. */
static int fault_of(void *address, enum access access)
{
    volatile char *byte = address;
    int number = sigsetjmp(back, 1);
    if (number)
        return number;
    if (access == READS)
        (void)*byte;
    else if (access == WRITES)
        *byte = 1;
    else
        ((int (*)(void))address)();
    return 0;
}

static void expect_fault(const char *what, void *address, enum access access, int number, int code)
{
    expect_equal(what, fault_of(address, access), number);
    expect_equal(what, told.si_code, code);
    expect_equal(what, (long)told.si_addr, (long)address);
}

#define EXPECT_FAULT(address, access, number, code) expect_fault(#access " " #address, address, access, number, code)

/* mov eax, VALUE; ret */
static void write_code(void *place, int value)
{
    unsigned char code[6] = {0xb8, 0, 0, 0, 0, 0xc3};
    memcpy(code + 1, &value, sizeof value);
    memcpy(place, code, sizeof code);
}

static int call(const void *code)
{
    return ((int (*)(void))code)();
}

static void bad_lengths(void)
{
    EXPECT_ERROR(map(NULL, 0, READ_WRITE, OWN, -1, 0), EINVAL);
    EXPECT_ERROR(map(NULL, (size_t)-1, READ_WRITE, OWN, -1, 0), ENOMEM);
    EXPECT_ERROR(map(NULL, 1UL << 47, PROT_NONE, OWN, -1, 0), ENOMEM);
}

static void bad_flags(void)
{
    int file = file_of(1);
    EXPECT_ERROR(map(NULL, PAGE, READ_WRITE, MAP_ANONYMOUS, -1, 0), EINVAL);
    EXPECT_ERROR(map(NULL, PAGE, READ_WRITE, 0, file, 0), EINVAL);
    EXPECT_ERROR(map(NULL, PAGE, READ_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, file, 0), EOPNOTSUPP);
    EXPECT_ERROR(map((void *)(PAGE + 1), PAGE, READ_WRITE, OWN | MAP_FIXED, -1, 0), EINVAL);
    EXPECT_TRUE(map(NULL, PAGE, READ_WRITE, OWN | 0x1000000, -1, 0) != -1); /* An unknown flag, not validated. */
}

static void bad_offsets(void)
{
    int file = file_of(1);
    EXPECT_ERROR(map(NULL, PAGE, PROT_READ, MAP_SHARED, file, 1), EINVAL);
    EXPECT_ERROR(map(NULL, PAGE, PROT_READ, OWN, -1, PAGE - 1), EINVAL);
    EXPECT_ERROR(map(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, file, -PAGE), EOVERFLOW);
}

static void bad_descriptors(void)
{
    struct gate gate = make_gate();
    int unreadable = open("/dev/null", O_WRONLY), folder = open("/", O_RDONLY);
    int read_only = open("/proc/self/exe", O_RDONLY);
    EXPECT_ERROR(map(NULL, PAGE, PROT_READ, MAP_PRIVATE, -1, 0), EBADF);
    EXPECT_ERROR(map(NULL, PAGE, PROT_READ, MAP_PRIVATE, 900, 0), EBADF);
    EXPECT_ERROR(map(NULL, PAGE, PROT_READ, MAP_PRIVATE, unreadable, 0), EACCES);
    EXPECT_ERROR(map(NULL, PAGE, PROT_READ, MAP_PRIVATE, gate.ends[0], 0), ENODEV);
    EXPECT_ERROR(map(NULL, PAGE, PROT_READ, MAP_PRIVATE, folder, 0), ENODEV);
    EXPECT_ERROR(map(NULL, PAGE, READ_WRITE, MAP_SHARED, read_only, 0), EACCES);
    EXPECT_TRUE(map(NULL, PAGE, READ_WRITE, MAP_PRIVATE, read_only, 0) != -1);
    EXPECT_TRUE(map(NULL, PAGE, READ_WRITE, OWN, 900, 0) != -1); /* Of no meaning there. */
}

static void bad_places(void)
{
    EXPECT_ERROR(map(NOT_CANONICAL, PAGE, READ_WRITE, OWN | MAP_FIXED, -1, 0), ENOMEM);
    EXPECT_ERROR(map((void *)0x7ffffffff000, PAGE, READ_WRITE, OWN | MAP_FIXED, -1, 0), ENOMEM);
    EXPECT_ERROR(map((void *)-PAGE, PAGE, READ_WRITE, OWN | MAP_FIXED, -1, 0), ENOMEM);
    EXPECT_TRUE(map(NOT_CANONICAL, PAGE, READ_WRITE, OWN, -1, 0) != -1); /* As a hint it is none. */
}

static void hints(void)
{
    char *memory = filled(3);
    munmap(memory + PAGE, PAGE);
    EXPECT(mmap(memory + PAGE, PAGE, READ_WRITE, OWN, -1, 0), memory + PAGE);
    munmap(memory + PAGE, PAGE);
    EXPECT(mmap(memory + PAGE + 5, PAGE, READ_WRITE, OWN, -1, 0), memory + PAGE);
    char *elsewhere = mmap(memory, PAGE, READ_WRITE, OWN, -1, 0);
    EXPECT_TRUE(elsewhere != MAP_FAILED && elsewhere != memory);
    EXPECT(memory[0], 'a');
}

static void fixed_replaces(void)
{
    char *memory = filled(3);
    EXPECT(mmap(memory + PAGE, PAGE, READ_WRITE, OWN | MAP_FIXED, -1, 0), memory + PAGE);
    EXPECT(memory[0], 'a');
    EXPECT(memory[PAGE], 0);
    EXPECT(memory[2 * PAGE], 'c');
}

static void fixed_that_fails(void)
{
    char *memory = filled(1);
    EXPECT_ERROR(map(memory, PAGE, READ_WRITE, MAP_SHARED | MAP_FIXED, 900, 0), EBADF);
    EXPECT_ERROR(map(memory, PAGE, READ_WRITE, MAP_ANONYMOUS | MAP_FIXED, -1, 0), EINVAL);
    EXPECT(memory[0], 'a');
}

static void fixed_not_replacing(void)
{
    char *memory = filled(3);
    EXPECT_ERROR(map(memory, PAGE, READ_WRITE, OWN | MAP_FIXED_NOREPLACE, -1, 0), EEXIST);
    munmap(memory + PAGE, PAGE);
    EXPECT_ERROR(map(memory + PAGE, 2 * PAGE, READ_WRITE, OWN | MAP_FIXED_NOREPLACE, -1, 0), EEXIST);
    EXPECT(map(memory + PAGE, PAGE, READ_WRITE, OWN | MAP_FIXED_NOREPLACE, -1, 0), memory + PAGE);
    EXPECT(memory[2 * PAGE], 'c');
}

static void low_addresses(void)
{
    void *place = mmap(NULL, PAGE, READ_WRITE, OWN | MAP_32BIT, -1, 0);
    EXPECT_TRUE(place != MAP_FAILED && (uintptr_t)place < 1UL << 31);
}

static void populated(void)
{
    unsigned char resident[4] = {0};
    char *memory = mmap(NULL, 4 * PAGE, READ_WRITE, OWN | MAP_POPULATE, -1, 0);
    EXPECT(mincore(memory, 4 * PAGE, resident), 0);
    EXPECT(resident[0] & resident[1] & resident[2] & resident[3] & 1, 1);
}

static void private_file(void)
{
    int file = file_of(2);
    char *memory = mmap(NULL, 2 * PAGE, READ_WRITE, MAP_PRIVATE, file, 0);
    memory[PAGE] = 'z';
    EXPECT(letter_of(file, 1), 'b');
    EXPECT(memory[0], 'a');
    close(file); /* The mapping keeps the file. */
    EXPECT(memory[PAGE], 'z');
}

static void shared_file(void)
{
    int file = file_of(3);
    char *memory = mmap(NULL, PAGE, READ_WRITE, MAP_SHARED, file, PAGE);
    char *second = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, file, PAGE);
    memory[0] = 'z';
    EXPECT(letter_of(file, 1), 'z');
    EXPECT(second[0], 'z');
    EXPECT(pwrite(file, "y", 1, PAGE), 1);
    EXPECT(memory[0], 'y');
    EXPECT(second[PAGE], 'c');
}

static void behind_the_end(void)
{
    int file = file_of(1);
    EXPECT(ftruncate(file, 100), 0);
    char *memory = mmap(NULL, 2 * PAGE, READ_WRITE, MAP_SHARED, file, 0);
    catch_faults();
    EXPECT(memory[PAGE - 1], 0);
    EXPECT_FAULT(memory + PAGE + 7, READS, SIGBUS, BUS_ADRERR);
    EXPECT(ftruncate(file, 2 * PAGE), 0);
    EXPECT(fault_of(memory + PAGE, WRITES), 0);
    EXPECT(ftruncate(file, 0), 0);
    EXPECT_FAULT(memory, READS, SIGBUS, BUS_ADRERR);
}

static void code_cut_off(void)
{
    int file = file_of(1);
    char *memory = mmap(NULL, PAGE, READ_WRITE | PROT_EXEC, MAP_SHARED, file, 0);
    catch_faults();
    write_code(memory, 7);
    EXPECT(call(memory), 7);
    EXPECT(ftruncate(file, 0), 0);
    EXPECT_FAULT(memory, CALLS, SIGBUS, BUS_ADRERR);
}

static void unmapping_errors(void)
{
    char *memory = filled(1);
    EXPECT_ERROR(munmap(memory, 0), EINVAL);
    EXPECT_ERROR(munmap(memory + 1, PAGE), EINVAL);
    EXPECT_ERROR(munmap(memory, (size_t)-1), EINVAL);
    EXPECT_ERROR(munmap(NOT_CANONICAL, PAGE), EINVAL);
    EXPECT(memory[0], 'a');
    EXPECT(munmap(memory, 1), 0); /* Lengths are rounded up. */
    EXPECT(munmap(memory, PAGE), 0); /* What is not there is no error. */
}

static void hole_made(void)
{
    char *memory = filled(5);
    catch_faults();
    EXPECT(munmap(memory + PAGE, 3 * PAGE), 0);
    EXPECT(memory[0], 'a');
    EXPECT(memory[4 * PAGE], 'e');
    EXPECT_FAULT(memory + 2 * PAGE, READS, SIGSEGV, SEGV_MAPERR);
    EXPECT(munmap(memory, 5 * PAGE), 0);
    EXPECT(is_mapped(memory + 4 * PAGE), 0);
}

static void protection_errors(void)
{
    char *memory = filled(3);
    int read_only = open("/proc/self/exe", O_RDONLY);
    EXPECT_ERROR(mprotect(memory + 1, PAGE, PROT_READ), EINVAL);
    EXPECT_ERROR(mprotect(memory, PAGE, 0x10), EINVAL);
    EXPECT_ERROR(mprotect(memory, PAGE, PROT_READ | PROT_GROWSDOWN), EINVAL);
    EXPECT_ERROR(mprotect(memory, PAGE, PROT_GROWSDOWN | PROT_GROWSUP), EINVAL);
    EXPECT_ERROR(mprotect(memory, (size_t)-PAGE, PROT_READ), ENOMEM);
    EXPECT_ERROR(mprotect(NOT_CANONICAL, PAGE, PROT_READ), ENOMEM);
    EXPECT(mprotect(memory, 0, PROT_NONE), 0);
    memory[0] = 'y';
    void *shared = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, read_only, 0);
    EXPECT_ERROR(mprotect(shared, PAGE, READ_WRITE), EACCES);
}

static void protection_up_to_a_hole(void)
{
    char *memory = filled(3);
    catch_faults();
    munmap(memory + PAGE, PAGE);
    EXPECT_ERROR(mprotect(memory, 3 * PAGE, PROT_READ), ENOMEM);
    EXPECT_FAULT(memory, WRITES, SIGSEGV, SEGV_ACCERR);
    EXPECT(fault_of(memory + 2 * PAGE, WRITES), 0);
}

static void protections(void)
{
    char *memory = filled(1);
    catch_faults();
    EXPECT(mprotect(memory, PAGE, PROT_READ), 0);
    EXPECT(fault_of(memory, READS), 0);
    EXPECT_FAULT(memory + 9, WRITES, SIGSEGV, SEGV_ACCERR);
    EXPECT_FAULT(memory, CALLS, SIGSEGV, SEGV_ACCERR);
    EXPECT(mprotect(memory, PAGE, PROT_NONE), 0);
    EXPECT_FAULT(memory + 9, READS, SIGSEGV, SEGV_ACCERR);
    EXPECT(mprotect(memory, PAGE, PROT_WRITE), 0); /* Which the processor reads, too. */
    EXPECT(fault_of(memory, READS), 0);
    EXPECT(fault_of(memory, WRITES), 0);
}

static void code_protected(void)
{
    char *memory = filled(1);
    catch_faults();
    write_code(memory, 1);
    EXPECT_FAULT(memory, CALLS, SIGSEGV, SEGV_ACCERR);
    for (int i = 2; i < 12; i++) {
        EXPECT(mprotect(memory, PAGE, READ_EXECUTE), 0);
        EXPECT(call(memory), i - 1);
        EXPECT_FAULT(memory, WRITES, SIGSEGV, SEGV_ACCERR);
        EXPECT(mprotect(memory, PAGE, READ_WRITE), 0);
        EXPECT_FAULT(memory, CALLS, SIGSEGV, SEGV_ACCERR);
        write_code(memory, i);
    }
}

static void code_replaced(void)
{
    char *memory = pages(1, READ_WRITE | PROT_EXEC);
    catch_faults();
    for (int i = 0; i < 10; i++) {
        EXPECT(mmap(memory, PAGE, READ_WRITE | PROT_EXEC, OWN | MAP_FIXED, -1, 0), memory);
        write_code(memory, i);
        EXPECT(call(memory), i);
    }
    EXPECT(munmap(memory, PAGE), 0);
    EXPECT_FAULT(memory, CALLS, SIGSEGV, SEGV_MAPERR);
}

static void code_of_files(void)
{
    int file = memfd_create("code", 0);
    EXPECT(ftruncate(file, 2 * PAGE), 0);
    char *written = mmap(NULL, 2 * PAGE, READ_WRITE, MAP_SHARED, file, 0);
    char *memory = mmap(NULL, 2 * PAGE, READ_EXECUTE, MAP_SHARED, file, 0);
    for (int i = 0; i < 10; i++) {
        write_code(written, i);
        write_code(written + PAGE, -i);
        EXPECT(call(memory), i);
        EXPECT(call(memory + PAGE), -i);
        /* Each page where the other one was. */
        char *second = mmap(NULL, 2 * PAGE, READ_EXECUTE, MAP_SHARED, file, 0);
        EXPECT(mmap(second, PAGE, READ_EXECUTE, MAP_SHARED | MAP_FIXED, file, PAGE), second);
        EXPECT(mmap(second + PAGE, PAGE, READ_EXECUTE, MAP_SHARED | MAP_FIXED, file, 0), second + PAGE);
        EXPECT(call(second), -i);
        EXPECT(call(second + PAGE), i);
        EXPECT(munmap(second, 2 * PAGE), 0);
    }
}

static void pages_of_files_exchanged(void)
{
    int file = file_of(2);
    char *memory = mmap(NULL, 2 * PAGE, READ_WRITE | PROT_EXEC, MAP_SHARED, file, 0);
    write_code(memory, 1);
    write_code(memory + PAGE, 2);
    EXPECT(call(memory), 1);
    EXPECT_ERROR(remap_file_pages(memory, PAGE, PROT_READ, 1, 0), EINVAL);
    EXPECT_ERROR(remap_file_pages(filled(1), PAGE, 0, 1, 0), EINVAL);
    EXPECT(remap_file_pages(memory, PAGE, 0, 1, 0), 0);
    EXPECT(call(memory), 2);
    EXPECT(call(memory + PAGE), 2);
}

static void advice_errors(void)
{
    char *memory = filled(3);
    EXPECT_ERROR(madvise(memory + 1, PAGE, MADV_DONTNEED), EINVAL);
    EXPECT_ERROR(madvise(memory, PAGE, 7), EINVAL);
    EXPECT_ERROR(madvise(memory, PAGE, -1), EINVAL);
    EXPECT_ERROR(madvise(memory, (size_t)-PAGE, MADV_NORMAL), EINVAL);
    EXPECT(madvise(memory, 0, MADV_DONTNEED), 0);
    EXPECT_ERROR(madvise(memory, PAGE, MADV_REMOVE), EINVAL); /* There is no file. */
    EXPECT(memory[0], 'a');
    munmap(memory + PAGE, PAGE);
    EXPECT_ERROR(madvise(memory, 3 * PAGE, MADV_DONTNEED), ENOMEM);
    EXPECT(memory[0] | memory[2 * PAGE], 0); /* Done on either side of the hole. */
}

static void thrown_away(void)
{
    int file = file_of(2);
    char *memory = mmap(NULL, 2 * PAGE, READ_WRITE | PROT_EXEC, MAP_PRIVATE, file, 0);
    write_code(memory, 3);
    EXPECT(call(memory), 3);
    memory[PAGE] = 'z';
    EXPECT(madvise(memory, 2 * PAGE, MADV_DONTNEED), 0);
    EXPECT(memory[0], 'a');
    EXPECT(memory[PAGE], 'b');
    write_code(memory, 4);
    EXPECT(call(memory), 4);
}

static void removed_from_file(void)
{
    int file = file_of(2);
    char *memory = mmap(NULL, 2 * PAGE, READ_WRITE, MAP_SHARED, file, 0);
    EXPECT(madvise(memory, PAGE, MADV_REMOVE), 0);
    EXPECT(letter_of(file, 0), 0);
    EXPECT(memory[0], 0);
    EXPECT(memory[PAGE], 'b');
}

static void kept_from_children(void)
{
    char *memory = filled(4);
    EXPECT(madvise(memory, PAGE, MADV_DONTFORK), 0);
    EXPECT(madvise(memory + PAGE, PAGE, MADV_WIPEONFORK), 0);
    EXPECT(madvise(memory + 2 * PAGE, PAGE, MADV_DONTFORK), 0);
    EXPECT(madvise(memory + 2 * PAGE, PAGE, MADV_DOFORK), 0);
    EXPECT(madvise(memory + 3 * PAGE, PAGE, MADV_WIPEONFORK), 0);
    EXPECT(madvise(memory + 3 * PAGE, PAGE, MADV_KEEPONFORK), 0);
    EXPECT_ERROR(madvise((void *)shared_ints(), PAGE, MADV_WIPEONFORK), EINVAL);
    pid_t child = fork();
    if (child == 0)
        _exit(is_mapped(memory) || memory[PAGE] != 0 || memory[2 * PAGE] != 'c' || memory[3 * PAGE] != 'd');
    EXPECT(ended(child), 0);
    EXPECT(memory[PAGE], 'b');
}

static void code_kept_from_children(void)
{
    char *memory = pages(2, READ_WRITE | PROT_EXEC);
    catch_faults();
    write_code(memory, 5);
    write_code(memory + PAGE, 6);
    EXPECT(call(memory) + call(memory + PAGE), 11);
    EXPECT(madvise(memory, PAGE, MADV_DONTFORK), 0);
    EXPECT(madvise(memory + PAGE, PAGE, MADV_WIPEONFORK), 0);
    pid_t child = fork();
    if (child == 0) {
        int is_gone = fault_of(memory, CALLS) == SIGSEGV && told.si_code == SEGV_MAPERR;
        is_gone &= ((unsigned char *)memory)[PAGE] == 0;
        write_code(memory + PAGE, 8);
        _exit(is_gone ? call(memory + PAGE) : 99);
    }
    EXPECT(ended(child), 8);
    EXPECT(call(memory) + call(memory + PAGE), 11);
}

static void guarded(void)
{
    char *memory = pages(2, READ_WRITE | PROT_EXEC);
    enum { GUARD_INSTALL = 102, GUARD_REMOVE };
    catch_faults();
    write_code(memory + PAGE, 5);
    EXPECT(call(memory + PAGE), 5);
    if (madvise(memory + PAGE, PAGE, GUARD_INSTALL) != 0) {
        skip_case("no guard regions");
        return;
    }
    EXPECT_FAULT(memory + PAGE, READS, SIGSEGV, SEGV_MAPERR);
    EXPECT_FAULT(memory + PAGE, CALLS, SIGSEGV, SEGV_MAPERR);
    EXPECT(madvise(memory + PAGE, PAGE, GUARD_REMOVE), 0);
    EXPECT(memory[PAGE], 0);
    write_code(memory + PAGE, 6);
    EXPECT(call(memory + PAGE), 6);
}

static void sealed(void)
{
    char *memory = filled(2);
    if (syscall(SYS_MSEAL, memory, PAGE, 0) == -1 && errno == ENOSYS) {
        skip_case("no mseal");
        return;
    }
    EXPECT_ERROR(syscall(SYS_MSEAL, memory, PAGE, 1), EINVAL);
    EXPECT_ERROR(syscall(SYS_MSEAL, memory + 1, PAGE, 0), EINVAL);
    EXPECT_ERROR(munmap(memory, PAGE), EPERM);
    EXPECT_ERROR(mprotect(memory, PAGE, PROT_READ), EPERM);
    EXPECT_ERROR(mremap(memory, PAGE, 2 * PAGE, MREMAP_MAYMOVE), EPERM);
    EXPECT_ERROR(map(memory, PAGE, READ_WRITE, OWN | MAP_FIXED, -1, 0), EPERM);
    EXPECT_ERROR(munmap(memory, 2 * PAGE), EPERM);
    memory[0] = 'y';
    EXPECT(memory[PAGE], 'b');
}

static void synchronized(void)
{
    int file = file_of(2);
    char *memory = mmap(NULL, 2 * PAGE, READ_WRITE, MAP_SHARED, file, 0);
    EXPECT(msync(memory, 2 * PAGE, MS_SYNC), 0);
    EXPECT(msync(memory, PAGE, MS_ASYNC | MS_INVALIDATE), 0);
    EXPECT_ERROR(msync(memory, PAGE, MS_SYNC | MS_ASYNC), EINVAL);
    EXPECT_ERROR(msync(memory, PAGE, 8), EINVAL);
    EXPECT_ERROR(msync(memory + 1, PAGE, MS_SYNC), EINVAL);
    munmap(memory + PAGE, PAGE);
    EXPECT_ERROR(msync(memory, 2 * PAGE, MS_SYNC), ENOMEM);
}

static void residency_errors(void)
{
    unsigned char resident[2];
    char *memory = filled(2);
    EXPECT_ERROR(mincore(memory + 1, PAGE, resident), EINVAL);
    EXPECT_ERROR(mincore(memory, PAGE, NOWHERE), EFAULT);
    EXPECT_ERROR(mincore(NOT_CANONICAL, PAGE, resident), ENOMEM);
    EXPECT(mincore(memory, 0, resident), 0);
    munmap(memory + PAGE, PAGE);
    EXPECT_ERROR(mincore(memory, 2 * PAGE, resident), ENOMEM);
}

static void locked(void)
{
    char *memory = filled(3);
    EXPECT(mlock(memory, 1), 0);
    EXPECT_ERROR(madvise(memory, PAGE, MADV_DONTNEED), EINVAL);
    EXPECT_ERROR(msync(memory, PAGE, MS_INVALIDATE), EBUSY);
    EXPECT(munlock(memory, PAGE), 0);
    EXPECT(madvise(memory, PAGE, MADV_DONTNEED), 0);
    EXPECT_ERROR(mlock2(memory, PAGE, 2), EINVAL);
    EXPECT(mlock2(memory, PAGE, MLOCK_ONFAULT), 0);
    EXPECT_ERROR(syscall(SYS_mlockall, 0), EINVAL);
    EXPECT_ERROR(syscall(SYS_mlockall, 16), EINVAL);
    munmap(memory + PAGE, PAGE);
    EXPECT_ERROR(mlock(memory, 3 * PAGE), ENOMEM);
    EXPECT_ERROR(munlock(memory, 3 * PAGE), ENOMEM);
    EXPECT_ERROR(mlock(memory, (size_t)-PAGE), EINVAL);
    EXPECT(munlockall(), 0);
}

static void break_moved(void)
{
    char *first = (char *)syscall(SYS_brk, 0);
    char *end = (char *)(((uintptr_t)first + PAGE - 1) & -PAGE);
    EXPECT(syscall(SYS_brk, end + 2 * PAGE), end + 2 * PAGE);
    end[PAGE] = 1;
    EXPECT(syscall(SYS_brk, end + PAGE), end + PAGE);
    EXPECT(is_mapped(end + PAGE), 0);
    EXPECT(syscall(SYS_brk, end + 2 * PAGE), end + 2 * PAGE);
    EXPECT(end[PAGE], 0);
    EXPECT(syscall(SYS_brk, 1), end + 2 * PAGE); /* Refused, and where it is. */
    EXPECT(syscall(SYS_brk, NOT_CANONICAL), end + 2 * PAGE);
    EXPECT(syscall(SYS_brk, first), first);
}

static void break_at_a_mapping(void)
{
    char *first = (char *)syscall(SYS_brk, 0);
    char *end = (char *)(((uintptr_t)first + PAGE - 1) & -PAGE);
    EXPECT(map(end + 4 * PAGE, PAGE, READ_WRITE, OWN | MAP_FIXED_NOREPLACE, -1, 0), end + 4 * PAGE);
    EXPECT(syscall(SYS_brk, end + 5 * PAGE), first);
    EXPECT(syscall(SYS_brk, end + 4 * PAGE), first); /* A page between both stays free. */
    EXPECT(syscall(SYS_brk, end + 3 * PAGE), end + 3 * PAGE);
    EXPECT(syscall(SYS_brk, first), first);
}

static void grows_down(void)
{
    /* It may grow until 256 pages are left to what lies below it. */
    char *below = pages(300, PROT_READ), *top = below + 299 * PAGE;
    EXPECT(munmap(below + PAGE, 298 * PAGE), 0);
    EXPECT(mmap(top, PAGE, READ_WRITE, OWN | MAP_FIXED | MAP_GROWSDOWN, -1, 0), top);
    catch_faults();
    for (size_t i = 1; i < 20; i++)
        EXPECT(fault_of(top - i * PAGE, WRITES), 0);
    EXPECT(is_mapped(top - 19 * PAGE), 1);
    EXPECT_FAULT(below + 200 * PAGE, WRITES, SIGSEGV, SEGV_MAPERR);
}

static void keys(void)
{
    char *memory = filled(1);
    EXPECT_ERROR(pkey_alloc(1, 0), EINVAL);
    EXPECT_ERROR(pkey_alloc(0, 4), EINVAL);
    EXPECT_ERROR(pkey_free(77), EINVAL);
    EXPECT_ERROR(pkey_mprotect(memory, PAGE, READ_WRITE, 77), EINVAL);
    EXPECT_ERROR(pkey_mprotect(memory, PAGE, READ_WRITE, -2), EINVAL);
    EXPECT(pkey_mprotect(memory, PAGE, PROT_READ, -1), 0);
    catch_faults();
    EXPECT_FAULT(memory, WRITES, SIGSEGV, SEGV_ACCERR);
}

static void segments(void)
{
    int segment = shmget(IPC_PRIVATE, 2 * PAGE, 0700);
    char *memory = shmat(segment, NULL, SHM_EXEC), *place = filled(3);
    EXPECT_TRUE(memory != (char *)-1);
    write_code(memory, 9);
    EXPECT(call(memory), 9);
    EXPECT_ERROR(shmat(segment, place, 0), EINVAL);
    EXPECT_ERROR(shmat(segment, place + 5, SHM_REMAP), EINVAL);
    EXPECT_ERROR(shmat(segment, NULL, SHM_REMAP), EINVAL);
    EXPECT_ERROR(shmat(INT32_MAX, NULL, 0), EINVAL);
    EXPECT_TRUE(shmat(segment, place + 5, SHM_REMAP | SHM_RND | SHM_EXEC) == place);
    EXPECT(call(place), 9);
    write_code(memory, 10);
    EXPECT(call(place), 10);
    EXPECT_TRUE(shmat(segment, place, SHM_REMAP | SHM_RDONLY) == place);
    catch_faults();
    EXPECT_FAULT(place, WRITES, SIGSEGV, SEGV_ACCERR);
    EXPECT_FAULT(place, CALLS, SIGSEGV, SEGV_ACCERR);
    EXPECT(place[2 * PAGE], 'c');
    EXPECT_ERROR(shmdt(place + PAGE), EINVAL);
    EXPECT_ERROR(shmdt(place + 1), EINVAL);
    EXPECT(shmdt(place), 0);
    EXPECT(shmdt(memory), 0);
    EXPECT_FAULT(memory, CALLS, SIGSEGV, SEGV_MAPERR);
    EXPECT(shmctl(segment, IPC_RMID, NULL), 0);
    EXPECT_ERROR(shmat(segment, NULL, 0), EINVAL);
}

static void sealed_files(void)
{
    int file = memfd_create("sealed", MFD_ALLOW_SEALING);
    EXPECT(ftruncate(file, PAGE), 0);
    void *writable = mmap(NULL, PAGE, READ_WRITE, MAP_SHARED, file, 0);
    EXPECT_ERROR(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE), EBUSY);
    EXPECT(munmap(writable, PAGE), 0);
    EXPECT(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK), 0);
    EXPECT_ERROR(map(NULL, PAGE, READ_WRITE, MAP_SHARED, file, 0), EPERM);
    EXPECT_TRUE(map(NULL, PAGE, READ_WRITE, MAP_PRIVATE, file, 0) != -1);
    EXPECT_ERROR(ftruncate(file, 0), EPERM);
    EXPECT_ERROR(memfd_create("unknown", 0x8000), EINVAL);
    EXPECT_ERROR(memfd_create(NOWHERE, 0), EFAULT);
}

static void copied_by_the_kernel(void)
{
    char *memory = pages(1, READ_WRITE | PROT_EXEC), *source = filled(1);
    struct iovec to = {memory, 6}, from = {source, 6}, nowhere = {NOWHERE, 6};
    for (int i = 0; i < 10; i++) {
        write_code(source, i);
        if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) == -1 && errno == ENOSYS) {
            skip_case("no process_vm_writev");
            return;
        }
        EXPECT(call(memory), i);
    }
    EXPECT_ERROR(process_vm_writev(getpid(), &from, 1, &nowhere, 1, 0), EFAULT);
    EXPECT_ERROR(process_vm_readv(getpid(), &from, 1, &nowhere, 1, 0), EFAULT);
    EXPECT_ERROR(process_vm_readv(getpid(), &from, 1, &to, 1, 1), EINVAL);
    EXPECT_ERROR(process_vm_readv(INT32_MAX, &from, 1, &to, 1, 0), ESRCH);
}

static void copied_by_forks(void)
{
    volatile int *shared = shared_ints();
    char *memory = filled(1), *code = pages(1, READ_WRITE | PROT_EXEC);
    write_code(code, 1);
    EXPECT(call(code), 1);
    pid_t child = fork();
    if (child == 0) {
        memory[0] = 'z';
        write_code(code, 2);
        shared[0] = call(code);
        _exit(0);
    }
    EXPECT(ended(child), 0);
    EXPECT(memory[0], 'a');
    EXPECT(shared[0], 2);
    EXPECT(call(code), 1);
}

static void zeros_of_a_device(void)
{
    int zeros = open("/dev/zero", O_RDWR);
    char *own = mmap(NULL, PAGE, READ_WRITE, MAP_PRIVATE, zeros, 0);
    char *shared = mmap(NULL, PAGE, READ_WRITE | PROT_EXEC, MAP_SHARED, zeros, 0);
    EXPECT(own[5] | shared[5], 0);
    pid_t child = fork();
    if (child == 0) {
        own[5] = 1;
        write_code(shared, 4);
        _exit(0);
    }
    EXPECT(ended(child), 0);
    EXPECT(own[5], 0);
    EXPECT(call(shared), 4);
}

static const struct one_case cases[] = {
    CASE(bad_lengths),
    CASE(bad_flags),
    CASE(bad_offsets),
    CASE(bad_descriptors),
    CASE(bad_places),
    CASE(hints),
    CASE(fixed_replaces),
    CASE(fixed_that_fails),
    CASE(fixed_not_replacing),
    CASE(low_addresses),
    CASE(populated),
    CASE(private_file),
    CASE(shared_file),
    CASE(behind_the_end),
    CASE(code_cut_off),
    CASE(unmapping_errors),
    CASE(hole_made),
    CASE(protection_errors),
    CASE(protection_up_to_a_hole),
    CASE(protections),
    CASE(code_protected),
    CASE(code_replaced),
    CASE(code_of_files),
    CASE(pages_of_files_exchanged),
    CASE(advice_errors),
    CASE(thrown_away),
    CASE(removed_from_file),
    CASE(kept_from_children),
    CASE(code_kept_from_children),
    CASE(guarded),
    CASE(sealed),
    CASE(synchronized),
    CASE(residency_errors),
    CASE(locked),
    CASE(break_moved),
    CASE(break_at_a_mapping),
    CASE(grows_down),
    CASE(keys),
    CASE(segments),
    CASE(sealed_files),
    CASE(copied_by_the_kernel),
    CASE(copied_by_forks),
    CASE(zeros_of_a_device),
};

int main(int count, char **arguments)
{
    (void)count;
    return RUN_CASES(cases, arguments + 1);
}
