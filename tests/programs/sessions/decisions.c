/* Branches that go either way, as often as not, for ever: each turn decides eight times by a number that is made up anew. */
int main(void)
{
    volatile unsigned total = 0;
    for (unsigned number = 1;;) {
        number ^= number << 13;
        number ^= number >> 17;
        number ^= number << 5;
        for (unsigned bit = 0; bit < 8; bit++)
            if (number >> bit & 1)
                total += bit;
            else
                total ^= number;
    }
}
