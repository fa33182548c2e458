/* what: a parent writes by process_vm_writev to code that its child may write, and has run often; in pieces, and where nobody may
 * build: -O1
 * lost: released_threads
 */
#include "trace.h"
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096

static unsigned char *code;

static int ask_often(void)
{
    int (*answer)(void) = (int (*)(void))(uintptr_t)code, sum = 0;
    for (int i = 0; i < 20000; i++)
        sum += answer();
    return sum / 20000;
}

static int read_only(void) { return 1; }

int main(void)
{
    struct gate begun = make_gate(), told = make_gate();
    unsigned char *data = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, "\xb8\x01\0\0\0\xc3", 6);
    pid_t child = fork();
    if (child == 0) {
        int sum = ask_often();
        open_gate(begun);
        pass_gate(told);
        _exit(sum * 10 + ask_often() + (data[0] == 7) * 100);
    }
    pass_gate(begun);
    unsigned char bytes[2] = {7, 2};
    struct iovec here = {bytes, 2}, there[2] = {{data, 1}, {code + 1, 1}};
    note("read only", process_vm_writev(child, &here, 1, &(struct iovec){(void *)(uintptr_t)read_only, 2}, 1, 0));
    note("nowhere", process_vm_writev(child, &here, 1, &(struct iovec){(void *)8, 2}, 1, 0));
    note("flags", process_vm_writev(child, &here, 1, there, 2, 1));
    note("written", process_vm_writev(child, &here, 1, there, 2, 0));
    open_gate(told);
    note("ended", wait_stop(child));
    return 0;
}
