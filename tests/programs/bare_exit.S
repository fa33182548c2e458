# what: the smallest program: two instructions and a system call
# build: -nostdlib -static
# status: 42
# traits: oracle
.intel_syntax noprefix
.globl _start
_start:
    mov edi, 42
    mov eax, 60
    syscall
