/* Calls a small function (tests/unit/probing) for each line, one after the other, with registers and bytes that are given;
   says what it left of both, and in its red zone. It has no dynamic linker, and they have a stack at an address of its own,
   so that two runs have the same in all registers. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct registers { uint64_t word[17]; };
void run(void *function, struct registers *in, struct registers *out, char *top);

#define FUNCTIONS(X)                                                                                                   \
    X(c_leaf) X(c_recursion) X(c_switch) X(c_indirect) X(c_tail) X(c_floats) X(c_global) X(c_goto)                      \
    X(s_loop) X(s_flags) X(s_calls) X(s_double) X(s_where) X(s_lock) X(s_red_zone) X(s_empty) X(s_short)                \
    X(s_strings) X(s_tails) X(s_hidden) X(s_eip)
#define DECLARE(name) extern char name[];
#define LIST(name) name,
FUNCTIONS(DECLARE)

#define STACK_BYTES 16384
#define RED_ZONE_BYTES 128
#define RETURN_BYTES 8
#define N_SEEDS 8
#define STATUS_FLAGS 0x8D5
static void *const functions[] = {FUNCTIONS(LIST)};
static uint8_t bytes[256], given[N_SEEDS][sizeof bytes];
static char stack[STACK_BYTES] __attribute__((aligned(64)));

static char signal_stack[65536];

static uint64_t mix(uint64_t sum, const void *data, unsigned n_bytes)
{
    for (unsigned at = 0; at < n_bytes / 8; at++) sum = (sum ^ ((const uint64_t *)data)[at]) * 0x9E3779B97F4A7C15;
    return sum;
}

int main(void)
{
    char line[64], *top = stack + STACK_BYTES - 1024, *red_zone = top - RETURN_BYTES - RED_ZONE_BYTES;
    for (unsigned seed = 0; seed < N_SEEDS; seed++)
        for (unsigned at = 0; at < sizeof bytes; at++) given[seed][at] = (seed * 37 + at * at) % 251;
    /* One of them keeps something below its red zone. */
    sigaltstack(&(stack_t){.ss_sp = signal_stack, .ss_size = sizeof signal_stack}, NULL);
    puts("ready");
    fflush(stdout);
    for (unsigned turn = 0; fgets(line, sizeof line, stdin); turn++) {
        uint64_t sum = 1;
        for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
            struct registers in, out;
            for (uint64_t at = 0; at < 17; at++)
                in.word[at] = (seed + 1) * 0x9E3779B97F4A7C15 + at * 0xD1B54A32D192ED03;
            in.word[7] %= 61, in.word[6] %= 1000, in.word[2] = (uint64_t)bytes;
            in.word[16] = (in.word[16] & STATUS_FLAGS) | 0x202;
            memcpy(bytes, given[seed], sizeof bytes);
            memset(red_zone, 0, RED_ZONE_BYTES);
            run(functions[turn % (sizeof functions / sizeof *functions)], &in, &out, top);
            /* Who single-steps it is seen by the other flags. */
            out.word[16] &= STATUS_FLAGS;
            sum = mix(mix(sum, &out, sizeof out), bytes, sizeof bytes);
            sum = mix(sum, red_zone, RED_ZONE_BYTES);
        }
        printf("%016lx\n", sum);
        fflush(stdout);
    }
    return 0;
}
