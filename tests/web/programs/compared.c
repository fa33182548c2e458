/* Runs and builds that differ in ways that are known: how often, only in one, and in the order. Without an argument 10
 * turns, with one 25; built with SECOND it has a function more, and one that has another way. */
static volatile unsigned sum;

#ifdef SECOND
__attribute__((noinline)) static void added(void) {
    for (unsigned turn = 0; turn < 7; turn++)
        sum += turn;
}
#endif

__attribute__((noinline)) static void common(void) {
    sum += 1;
}

__attribute__((noinline)) static void only_first(void) {
    sum += 3;
}

__attribute__((noinline)) static void only_second(void) {
    sum += 5;
}

__attribute__((noinline)) static void changed(unsigned turn) {
#ifdef SECOND
    if (turn & 1)
        sum ^= 0x55;
#endif
    sum += turn;
}

int main(int argc, char **argv) {
    (void)argv;
    unsigned turns = argc > 1 ? 25 : 10;
    for (unsigned turn = 0; turn < turns; turn++)
        common();
    for (unsigned turn = 0; turn < 4; turn++)
        changed(turn);
    if (argc > 1)
        only_second();
    else
        only_first();
#ifdef SECOND
    added();
#endif
    return 0;
}
