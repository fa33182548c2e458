/* Labels in code without types and sizes, as assemblers leave them. */
    .text
    .globl main
main:
    mov $3, %eax
inner:
    add $4, %eax
    .globl seen
seen:
    sub $7, %eax
    ret
    .section .note.GNU-stack, "", @progbits
