/* what: code that is rewritten in writable and executable memory, by its caller and by itself, in the block that runs
 * build: -O1
 * traits: oracle-instructions
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

typedef int function(int);

int main(void)
{
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static const unsigned char adder[] = {0x8d, 0x87, 0, 0, 0, 0, 0xc3};
    memcpy(code, adder, sizeof adder);
    long sum = 0;
    for (int i = 0; i < 100; i++) {
        memcpy(code + 2, &i, 4);
        sum = sum * 3 + ((function *)code)(i);
    }
    printf("by the caller: %ld\n", sum);

    /* mov byte [rip+1], 5 (changes the next instruction's immediate); mov eax, 1; add eax, edi; ret */
    static const unsigned char itself[] = {0xc6, 0x05, 1, 0, 0, 0, 5, 0xb8, 1, 0, 0, 0, 0x01, 0xf8, 0xc3};
    unsigned char *other = code + 256;
    sum = 0;
    for (int i = 0; i < 20; i++) {
        memcpy(other, itself, sizeof itself);
        other[6] = (unsigned char)(i + 1);
        sum = sum * 3 + ((function *)other)(i);
    }
    printf("by itself: %ld\n", sum);
    return 0;
}
