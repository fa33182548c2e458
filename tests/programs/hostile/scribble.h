/* Where the runtime may be, the mark of its shared memory, and random words: `state` is the seed. */
#include <stdint.h>

static const uint64_t BASES[] = {0x2A0000000000, 0x3A0000000000, 0x1A0000000000, 0x4A0000000000};
static const uint64_t MAGIC = 0x314d485357454c43;
static uint64_t state;

static uint64_t next(void)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}
