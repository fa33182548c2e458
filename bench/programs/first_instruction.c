// Writes what CLOCK_MONOTONIC says at its first instructions to standard output, as two 8-byte numbers: seconds,
// nanoseconds. Without libc, so that nothing comes before.
static long call(long number, long a, long b, long c) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

__attribute__((force_align_arg_pointer)) void _start(void) {
    long time[2];
    call(228, 1, (long)time, 0);              // clock_gettime(CLOCK_MONOTONIC)
    call(1, 1, (long)time, sizeof time);      // write
    call(231, 0, 0, 0);                       // exit_group
}
