/* Functions as compilers seldom make them. Each takes two numbers (rdi, rsi) and 256 bytes (rdx). */
        .intel_syntax noprefix
        .text

        .macro begin name
        .p2align 4
        .globl \name
        .hidden \name
        .type \name, @function
\name:
        .endm
        .macro end name
        .size \name, . - \name
        .endm

begin s_loop
        endbr64
        mov ecx, edi
        and ecx, 15
        inc ecx
        mov rax, rsi
1:      lea rax, [rax + rax * 2 + 1]
        loop 1b
        mov ecx, esi
        and ecx, 3
        jrcxz 2f
        add rax, 7
2:      mov ecx, 5
        cmp rax, rax
3:      loope 4f
        jmp 5f
4:      inc rax
        cmp rax, rax
        jmp 3b
5:      ret
end s_loop

begin s_flags
        xor eax, eax
        mov ecx, 8
        clc
1:      mov r8, [rdx + rcx * 8]
        adc rax, r8
        rcl rsi, 1
        dec ecx
        jnz 1b
        setc r9b
        seto r10b
        jo 2f
        jp 3f
        lahf
        ret
2:      stc
        ret
3:      cmc
        ret
end s_flags

begin s_calls
        push rbx
        sub rsp, 32
        lea rax, [rip + s_double]
        mov [rsp + 8], rax
        mov [rsp], rax
        mov rbx, rdi
        call [rsp + 8]
        add rbx, rax
        call [rsp]
        add rbx, rax
        call rax_is_a_target
        add rbx, rax
        lea rcx, [rip + s_double]
        call rcx
        add rbx, rax
        call [rip + s_pointer]
        add rbx, rax
        xor eax, eax
        call [rsp + rax * 8 + 8]
        add rbx, rax
        lea r8, [rsp - 300]
        lea rax, [rip + s_double]
        mov [rsp - 300 + 0x50], rax
        mov ecx, 10
        call [r8 + rcx * 8]
        lea rax, [rbx + rax]
        add rsp, 32
        pop rbx
        ret
end s_calls

begin rax_is_a_target
        lea rax, [rip + s_double]
        jmp rax
end rax_is_a_target

begin s_double
        lea rax, [rdi + rdi]
        ret
end s_double

begin s_where
        call 1f
1:      pop rax
        lea rcx, [rip + 1b]
        sub rax, rcx
        mov rcx, [rsp]
        call 2f
        ret
2:      mov r8, [rsp]
        lea r9, [rip + 2b]
        sub r9, r8
        ret
end s_where

begin s_lock
        mov rax, rsi
        test dil, 1
        je 1f
        lock
1:      add [rdx], rax
        mov rax, [rdx]
        ret
end s_lock

begin s_red_zone
        mov [rsp - 8], rdi
        mov [rsp - 16], rsi
        mov [rsp - 128], rdx
        inc qword ptr [rsp - 8]
        mov rax, [rsp - 8]
        xor rax, [rsp - 16]
        mov rdx, [rsp - 128]
        ret
end s_red_zone

begin s_empty
        ret
end s_empty

begin s_short
        nop
        ret 
        ret
end s_short

begin s_strings
        mov rsi, rdx
        lea rdi, [rdx + 64]
        mov ecx, 40
        rep movsb
        mov rdi, rdx
        mov al, 0x41
        mov ecx, 200
        repne scasb
        mov eax, ecx
        bnd ret
end s_strings

begin s_tails
        cmp rdi, rsi
        ja s_double
        je s_flags
        test sil, 1
        jne s_lock
        jmp [rip + s_pointer]
end s_tails

begin s_hidden
        and edi, 3
        lea rax, [rip + 1f]
        lea rcx, [rip + s_distances]
        movzx ecx, byte ptr [rcx + rdi]
        add rax, rcx
        xor ecx, ecx
        jmp rax
1:      inc ecx
        inc ecx
        inc ecx
        inc ecx
        lea rax, [rcx + rsi]
        ret
end s_hidden

begin s_eip
        lea eax, [eip + s_eip]
        lea rcx, [rip + s_eip]
        sub eax, ecx
        .byte 0x66, 0x66, 0x48, 0xe8
        .long s_double - . - 4
        ret
end s_eip

        .section .data.rel.local, "aw"
s_pointer:
        .quad s_double
        .section .rodata
s_distances:
        .byte 0, 2, 4, 6
        .section .note.GNU-stack, "", @progbits
