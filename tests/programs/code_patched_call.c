/* what: a JIT: calls and jumps whose targets are patched, inline caches, stubs that patch their caller and go on
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static unsigned char *code;
static unsigned n_patches;

static void emit_constant(unsigned at, unsigned value)
{
    code[at] = 0xb8;
    memcpy(code + at + 1, &value, 4);
    code[at + 5] = 0xc3;
}

static void set_target(unsigned char *call, unsigned char *target)
{
    int32_t offset = (int32_t)(target - (call + 5));
    memcpy(call + 1, &offset, 4);
}

static unsigned char *caller;

/* Called by the stub: patches the call that came there, and says where it is to go on. */
static __attribute__((used)) unsigned char *resolve(unsigned char *return_address)
{
    unsigned char *target = code + 256 + 16 * (n_patches++ % 8);
    set_target(return_address - 5, target);
    return target;
}

int main(void)
{
    code = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (unsigned i = 0; i < 8; i++)
        emit_constant(256 + 16 * i, 100 + i);
    /* sub $8, %rsp; call target; add $8, %rsp; ret */
    static const unsigned char around[] = {0x48, 0x83, 0xec, 8, 0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xc4, 8, 0xc3};
    memcpy(code, around, sizeof around);
    caller = code + 4;
    unsigned long sum = 0;
    for (unsigned i = 0; i < 200; i++) {
        set_target(caller, code + 256 + 16 * (i * 5 % 8));
        sum = sum * 31 + ((unsigned (*)(void))code)();
    }
    printf("patched calls %lx\n", sum);
    /* A jump, first a short one to the next instruction, then away. */
    code[1024] = 0xe9;
    for (unsigned i = 0; i < 100; i++) {
        set_target(code + 1024, i % 3 ? code + 256 : code + 272);
        sum = sum * 31 + ((unsigned (*)(void))(code + 1024))();
    }
    printf("patched jumps %lx\n", sum);
    /* The stub: mov (%rsp), %rdi; sub $8, %rsp; mov $resolve, %rax; call *%rax; add $8, %rsp; jmp *%rax */
    unsigned char stub[] = {0x48, 0x8b, 0x3c, 0x24, 0x48, 0x83, 0xec, 8, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0,
                            0xff, 0xd0, 0x48, 0x83, 0xc4, 8, 0xff, 0xe0};
    uintptr_t address = (uintptr_t)resolve;
    memcpy(stub + 10, &address, 8);
    memcpy(code + 2048, stub, sizeof stub);
    for (unsigned i = 0; i < 50; i++) {
        if (i % 5 == 0)
            set_target(caller, code + 2048);
        sum = sum * 31 + ((unsigned (*)(void))code)();
    }
    printf("stubs %lx, %u patches\n", sum, n_patches);
    /* An inline cache: cmp $type, %edi; jne 1f; mov $value, %eax; ret; 1: mov $0, %eax; ret */
    static const unsigned char cache[] = {0x81, 0xff, 0, 0, 0, 0, 0x75, 6, 0xb8, 0, 0, 0, 0, 0xc3, 0xb8, 0, 0, 0, 0, 0xc3};
    memcpy(code + 3072, cache, sizeof cache);
    unsigned misses = 0;
    for (unsigned i = 0; i < 200; i++) {
        unsigned type = i / 20 % 4 + 1;
        unsigned value = ((unsigned (*)(unsigned))(code + 3072))(type);
        if (value == 0) {
            misses++;
            memcpy(code + 3072 + 2, &type, 4);
            value = type * 11;
            memcpy(code + 3072 + 9, &value, 4);
        }
        sum = sum * 31 + value;
    }
    printf("cache %lx, %u misses\n", sum, misses);
    return 0;
}
