/* mremap: growing, shrinking, moving to a given place, leaving the old place: what is where afterwards, and errors. */
#include "cases.h"
#include <sys/resource.h>

#define READ_WRITE (PROT_READ | PROT_WRITE)

static int is_mapped(void *address)
{
    unsigned char resident;
    return mincore(address, PAGE, &resident) == 0;
}

static char *filled(size_t count)
{
    char *memory = pages(count, READ_WRITE);
    for (size_t i = 0; i < count; i++)
        memory[i * PAGE] = (char)('a' + i);
    return memory;
}

static void bad_flags(void)
{
    char *memory = filled(2);
    EXPECT_ERROR(mremap(memory, PAGE, PAGE, 8), EINVAL);
    EXPECT_ERROR(mremap(memory, PAGE, PAGE, MREMAP_FIXED, memory + PAGE), EINVAL);
    EXPECT_ERROR(mremap(memory, PAGE, 2 * PAGE, MREMAP_DONTUNMAP | MREMAP_MAYMOVE), EINVAL);
    EXPECT_ERROR(mremap(memory, PAGE, PAGE, MREMAP_DONTUNMAP), EINVAL);
}

static void bad_addresses(void)
{
    char *memory = filled(4);
    EXPECT_ERROR(mremap(memory + 1, PAGE, 2 * PAGE, MREMAP_MAYMOVE), EINVAL);
    EXPECT_ERROR(mremap(memory, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, memory + 1), EINVAL);
    EXPECT_ERROR(mremap(memory, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, memory + PAGE), EINVAL);
    EXPECT_ERROR(mremap(memory, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, memory), EINVAL);
    EXPECT_ERROR(mremap(memory, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, NOT_CANONICAL), EINVAL);
    munmap(memory + PAGE, PAGE);
    EXPECT_ERROR(mremap(memory + PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE), EFAULT);
    EXPECT_ERROR(mremap(memory, 3 * PAGE, 4 * PAGE, MREMAP_MAYMOVE), EFAULT);
}

static void bad_sizes(void)
{
    char *memory = filled(1);
    EXPECT_ERROR(mremap(memory, PAGE, 0, MREMAP_MAYMOVE), EINVAL);
    EXPECT_ERROR(mremap(memory, 0, PAGE, MREMAP_MAYMOVE), EINVAL); /* Nothing but shared memory can be doubled. */
    EXPECT_TRUE(mremap(memory, PAGE, 1UL << 47, MREMAP_MAYMOVE) == MAP_FAILED);
    EXPECT(memory[0], 'a');
}

static void size_kept(void)
{
    char *memory = filled(2);
    EXPECT(mremap(memory, 2 * PAGE, 2 * PAGE, 0), memory);
    EXPECT(mremap(memory, 2 * PAGE - 5, 2 * PAGE, 0), memory);
    EXPECT(memory[PAGE], 'b');
}

static void shrunk(void)
{
    char *memory = filled(4);
    EXPECT(mremap(memory, 4 * PAGE, PAGE + 1, 0), memory);
    EXPECT(memory[PAGE], 'b');
    EXPECT(is_mapped(memory + 2 * PAGE), 0);
    EXPECT(is_mapped(memory + 3 * PAGE), 0);
}

static void grown_in_place(void)
{
    char *memory = filled(4);
    munmap(memory + PAGE, 3 * PAGE);
    EXPECT(mremap(memory, PAGE, 3 * PAGE, 0), memory);
    EXPECT(memory[0], 'a');
    EXPECT(memory[PAGE], 0);
    memory[2 * PAGE] = 1;
    EXPECT(is_mapped(memory + 3 * PAGE), 0);
}

static void no_room_to_grow(void)
{
    char *memory = filled(3);
    mprotect(memory + PAGE, PAGE, PROT_READ);
    EXPECT_ERROR(mremap(memory, PAGE, 2 * PAGE, 0), ENOMEM);
    char *moved = mremap(memory, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
    EXPECT_TRUE(moved != MAP_FAILED && moved != memory);
    EXPECT(moved[0], 'a');
    EXPECT(moved[PAGE], 0);
    EXPECT(is_mapped(memory), 0);
    EXPECT(memory[PAGE], 'b');
}

static void moved_to_given_place(void)
{
    char *memory = filled(2), *place = filled(3);
    EXPECT(mremap(memory, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place + PAGE), place + PAGE);
    EXPECT(place[0], 'a');
    EXPECT(place[PAGE], 'a');
    EXPECT(place[2 * PAGE], 'b');
    EXPECT(is_mapped(memory), 0);
}

static void moved_and_shrunk(void)
{
    char *memory = filled(3), *place = filled(2);
    EXPECT(mremap(memory, 3 * PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place + PAGE), place + PAGE);
    EXPECT(place[PAGE], 'a');
    for (int i = 0; i < 3; i++)
        EXPECT(is_mapped(memory + (size_t)i * PAGE), 0);
}

static void old_place_left(void)
{
    char *memory = filled(2);
    char *moved = mremap(memory, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    EXPECT_TRUE(moved != MAP_FAILED);
    EXPECT(moved[PAGE], 'b');
    EXPECT(is_mapped(memory), 1);
    EXPECT(memory[PAGE], 0);
}

static void shared_doubled(void)
{
    char *memory = (char *)shared_ints();
    memory[5] = 1;
    char *second = mremap(memory, 0, PAGE, MREMAP_MAYMOVE);
    EXPECT_TRUE(second != MAP_FAILED && second != memory);
    EXPECT(second[5], 1);
    second[6] = 2;
    EXPECT(memory[6], 2);
}

static void file_grown(void)
{
    int file = memfd_create("grown", 0);
    EXPECT(ftruncate(file, (off_t)(2 * PAGE)), 0);
    EXPECT(pwrite(file, "x", 1, (off_t)PAGE), 1);
    char *memory = mmap(NULL, PAGE, READ_WRITE, MAP_SHARED, file, 0);
    memory = mremap(memory, PAGE, 3 * PAGE, MREMAP_MAYMOVE);
    EXPECT(memory[PAGE], 'x');
    pid_t child = fork();
    if (child == 0)
        _exit(((volatile char *)memory)[2 * PAGE]);
    EXPECT(ended(child), BY_SIGNAL(SIGBUS));
}

static void protection_kept(void)
{
    char *memory = filled(1), *place = filled(1);
    mprotect(memory, PAGE, PROT_READ);
    EXPECT(mremap(memory, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place), place);
    EXPECT(place[0], 'a');
    pid_t child = fork();
    if (child == 0) {
        *(volatile char *)place = 1;
        _exit(0);
    }
    EXPECT(ended(child), BY_SIGNAL(SIGSEGV));
}

static void moved_code(void)
{
    static const unsigned char give_seven[] = {0xb8, 7, 0, 0, 0, 0xc3}, give_eight[] = {0xb8, 8, 0, 0, 0, 0xc3};
    char *code = pages(1, READ_WRITE), *place = pages(1, READ_WRITE);
    memcpy(code, give_seven, sizeof give_seven);
    memcpy(place, give_eight, sizeof give_eight);
    mprotect(code, PAGE, PROT_READ | PROT_EXEC);
    mprotect(place, PAGE, PROT_READ | PROT_EXEC);
    EXPECT(((int (*)(void))code)(), 7);
    EXPECT(((int (*)(void))place)(), 8);
    EXPECT(mremap(code, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place), place);
    EXPECT(((int (*)(void))place)(), 7);
    pid_t child = fork();
    if (child == 0)
        _exit(((int (*)(void))code)());
    EXPECT(ended(child), BY_SIGNAL(SIGSEGV));
}

static void code_cut_off(void)
{
    static const unsigned char give_nine[] = {0xb8, 9, 0, 0, 0, 0xc3};
    char *code = pages(2, READ_WRITE);
    memcpy(code + PAGE, give_nine, sizeof give_nine);
    mprotect(code, 2 * PAGE, PROT_READ | PROT_EXEC);
    EXPECT(((int (*)(void))(code + PAGE))(), 9);
    EXPECT(mremap(code, 2 * PAGE, PAGE, 0), code);
    pid_t child = fork();
    if (child == 0)
        _exit(((int (*)(void))(code + PAGE))());
    EXPECT(ended(child), BY_SIGNAL(SIGSEGV));
}

static void locked_limit(void)
{
    struct rlimit limit = {0, 0};
    char *memory = filled(3);
    munmap(memory + PAGE, 2 * PAGE);
    if (mlock(memory, PAGE) != 0) {
        skip_case("no memory may be locked");
        return;
    }
    setrlimit(RLIMIT_MEMLOCK, &limit);
    if (geteuid() != 0)
        EXPECT_ERROR(mremap(memory, PAGE, 2 * PAGE, 0), EAGAIN);
    EXPECT(memory[0], 'a');
}

static const struct one_case cases[] = {
    CASE(bad_flags),        CASE(bad_addresses),        CASE(bad_sizes),      CASE(size_kept),
    CASE(shrunk),           CASE(grown_in_place),       CASE(no_room_to_grow), CASE(moved_to_given_place),
    CASE(moved_and_shrunk), CASE(old_place_left),       CASE(shared_doubled), CASE(file_grown),
    CASE(protection_kept),  CASE(moved_code),           CASE(code_cut_off),   CASE(locked_limit),
};

int main(int count, char **arguments)
{
    (void)count;
    return RUN_CASES(cases, arguments + 1);
}
