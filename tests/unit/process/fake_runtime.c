/* A stand-in for the runtime, for tests of injection and draining: it says that it runs, leaves a few records and one
 * counter, and lets the program run natively. Built with -DDAMAGE=n it breaks the rules of the ring instead. */
#include "layout.h"

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;

#define AT(base, offset, type) (*(volatile type *)((base) + (offset)))
#define STRING(x) #x
#define EXPAND(x) STRING(x)

__asm__(".section .note.clew,\"a\",@note\n"
        ".balign 4\n"
        ".long 5, 40, " EXPAND(NOTE_TYPE) "\n"
        ".asciz \"clew\"\n.balign 4\n"
        ".long " EXPAND(NOTE_VERSION) ", 0\n"
        ".byte " NOTE_HASH "\n"
        ".text\n");

/* Needs relative relocations, one of them in read-only-after-relocation memory. */
static u64 zeroed[512];
static u64 *const pointer_to_zeroed = &zeroed[3];
static volatile u64 value = 7;
static volatile u64 *volatile pointer_to_value = &value;

static long system_call(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

static void put_event(u64 ring, u64 slot, u16 event_kind, u64 a, u32 tid)
{
    u64 head = AT(slot, SLOT_RING_HEAD, u64);
    u64 record = ring + head % RING_BYTES;
    AT(record, 0, u16) = RECORD_EVENT;
    AT(record, 2, u16) = 0;
    AT(record, 4, u32) = tid;
    AT(record, 16, u64) = a;
    AT(record, 48, u16) = event_kind;
    AT(slot, SLOT_RING_HEAD, u64) = head + 64;
}

void start(u64 block)
{
    u64 shared = AT(block, START_SHARED_BASE, u64);
    u64 status = shared + AT(shared, HEADER_STATUS_OFFSET, u64);
    u64 slot = shared + AT(shared, HEADER_SLOTS_OFFSET, u64);
    u64 ring = shared + AT(shared, HEADER_RINGS_OFFSET, u64);
    u64 counters = shared + AT(shared, HEADER_COUNTERS_OFFSET, u64);
    u32 tid = system_call(186, 0, 0, 0);
    *pointer_to_value += 1;
    if (value != 8 || *pointer_to_zeroed != 0)
        system_call(60, 99, 0, 0);
    while (AT(status, STATUS_PAUSE_TICKET, u32))
        system_call(24, 0, 0, 0);
    AT(slot, SLOT_TID, u32) = tid;
    AT(slot, SLOT_STATE, u32) = 1;
    AT(status, STATUS_SLOTS_USED, u64) = 1;
    put_event(ring, slot, EVENT_THREAD_START, 0, tid);
    for (u32 i = 0; i < MANY; i++) {
        while (AT(slot, SLOT_RING_HEAD, u64) - AT(slot, SLOT_RING_TAIL, volatile u64) >= RING_BYTES)
            system_call(24, 0, 0, 0);
        put_event(ring, slot, EVENT_SIGNAL, i, tid);
    }
    AT(counters, 0, u64) = 42;
    AT(counters, 8 * 100000, u64) = 43;
    AT(status, STATUS_COUNTERS_USED, u64) = 100001;
#if DAMAGE == 1
    AT(slot, SLOT_RING_HEAD, u64) += 1ul << 40;
#elif DAMAGE == 2
    AT(slot, SLOT_RING_HEAD, u64) += 7;
#elif DAMAGE == 3
    AT(status, STATUS_COUNTERS_USED, u64) = ~0ul;
    AT(slot, SLOT_STATE, u32) = 77;
    AT(shared, HEADER_STATUS_OFFSET, u64) = ~0ul;
    AT(shared, HEADER_SLOTS_OFFSET, u64) = ~0ul;
#elif DAMAGE == 4
    AT(status, STATUS_ERROR, u32) = 5;
    AT(status, STATUS_STATE, u32) = 2;
    system_call(60, 127, 0, 0);
#endif
    AT(status, STATUS_STATE, u32) = 1;
}

__asm__(".globl _start\n"
        "_start:\n"
        "  mov %rdi, %rbx\n"
        "  mov %rsp, %rbp\n"
        "  and $-16, %rsp\n"
        "  call start\n"
        "  mov %rbx, %rdi\n"
        "  mov 96(%rdi), %rsp\n"
        "  mov 192(%rdi), %rax\n"
        "  mov %rax, -8(%rsp)\n"
        "  mov 64(%rdi), %rax\n"
        "  mov 72(%rdi), %rcx\n"
        "  mov 80(%rdi), %rdx\n"
        "  mov 88(%rdi), %rbx\n"
        "  mov 104(%rdi), %rbp\n"
        "  mov 112(%rdi), %rsi\n"
        "  mov 128(%rdi), %r8\n"
        "  mov 136(%rdi), %r9\n"
        "  mov 144(%rdi), %r10\n"
        "  mov 152(%rdi), %r11\n"
        "  mov 160(%rdi), %r12\n"
        "  mov 168(%rdi), %r13\n"
        "  mov 176(%rdi), %r14\n"
        "  mov 184(%rdi), %r15\n"
        "  mov 120(%rdi), %rdi\n"
        "  jmp *-8(%rsp)\n");
