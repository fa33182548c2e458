/* Writes one line by one system call: for signal handlers and threads, where stdio may not be used. */
#pragma once
#include <string.h>
#include <unistd.h>

static void note(const char *text, long value)
{
    char line[160];
    size_t length = 0;
    while (text[length] != '\0' && length < 120) {
        line[length] = text[length];
        length++;
    }
    line[length++] = ' ';
    unsigned long rest = value < 0 ? -(unsigned long)value : (unsigned long)value;
    char digits[24];
    int count = 0;
    do {
        digits[count++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    if (value < 0)
        line[length++] = '-';
    while (count > 0)
        line[length++] = digits[--count];
    line[length++] = '\n';
    if (write(1, line, length) != (ssize_t)length)
        _exit(99);
}
