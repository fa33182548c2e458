// The gadget: with -DLIBRARY the library, else a program that uses it.
#include "gadget.h"

#ifdef LIBRARY
#include <stdlib.h>
#include <string.h>
struct gadget {
    int colours;
};
gadget *gadget_open(const char *path, enum gadget_mode mode, gadget_colours colours) {
    gadget *made = mode == GADGET_QUIET ? NULL : malloc(sizeof *made);
    if (made) {
        made->colours = (int)colours + (int)strlen(path);
    }
    return made;
}
int gadget_place(gadget *own, const struct gadget_frame *frame, struct gadget_point *corner) {
    corner->x += frame->corner.x;
    corner->y = 9;
    return own->colours;
}
long gadget_fill(gadget *own, void *area, size_t area_len) {
    memset(area, 'z', area_len);
    return own->colours;
}
int gadget_sum(const int *numbers, unsigned n) {
    int sum = 0;
    while (n) {
        sum += numbers[--n];
    }
    return sum;
}
int gadget_stat(FILE *log, struct stat *found) {
    return log == NULL && stat("/", found);
}
enum gadget_mode gadget_close(gadget *own) {
    free(own);
    return GADGET_LOUD;
}
#else
int main(void) {
    struct gadget_frame frame = {"the frame", {3, -4}, "tagged", {7, 8}, 1, {5}, NULL};
    struct gadget_point corner = {10, 1};
    struct stat found;
    char area[6];
    gadget *own = gadget_open("/gadget", GADGET_LOUD, GADGET_RED | GADGET_BLUE);
    gadget_open("/none", GADGET_QUIET, GADGET_WHITE);
    gadget_place(own, &frame, &corner);
    gadget_fill(own, area, sizeof area);
    gadget_sum((int[]){1, 2, 3}, 3);
    gadget_stat(NULL, &found);
    return gadget_close(own) != GADGET_LOUD;
}
#endif
