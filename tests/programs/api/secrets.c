// Gives words to functions that are to keep them.
#include <crypt.h>
#include <string.h>

int main(void) {
    const char *told = crypt("open sesame", "$1$abcdefgh$");
    return told == NULL || strncmp(told, "$1$abcdefgh$", 12) != 0;
}
