/* A loop whose turns the tests find again in a trace: the block `turn` runs as often as `run_turns` is told. */
void run_turns(long n_turns);
__asm__(".text\n"
        ".type run_turns, @function\n"
        "run_turns:\n"
        "    nop\n"
        ".size run_turns, . - run_turns\n"
        ".type turn, @function\n"
        "turn:\n"
        "    dec %rdi\n"
        "    jnz turn\n"
        "    ret\n"
        ".size turn, . - turn\n");
