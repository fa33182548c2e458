/* what: code at many addresses: 300 mappings, far above and below the program, run in turn and all unmapped
 * build: -O1
 * traits: oracle-instructions
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

typedef long function(long);

int main(void)
{
    /* lea rax, [rdi + value]; test eax, 1; jz +3; inc rax; ret */
    static const unsigned char code[] = {0x48, 0x8d, 0x87, 0, 0, 0, 0, 0xa9, 1, 0, 0, 0, 0x74, 3, 0x48, 0xff, 0xc0, 0xc3};
    static function *functions[300];
    long sum = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 300; i++) {
            void *hint = (void *)(0x100000000000ul + (uintptr_t)i * 0x3f0000000ul);
            unsigned char *page = mmap(hint, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (page == MAP_FAILED)
                return 1;
            memcpy(page, code, sizeof code);
            int value = i * (round + 1);
            memcpy(page + 3, &value, 4);
            mprotect(page, 4096, PROT_READ | PROT_EXEC);
            functions[i] = (function *)page;
        }
        for (int turn = 0; turn < 3; turn++)
            for (int i = 0; i < 300; i++)
                sum = functions[i](sum);
        for (int i = 0; i < 300; i++)
            munmap((void *)functions[i], 4096);
    }
    printf("%ld\n", sum);
    return 0;
}
