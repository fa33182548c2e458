// A library that no description of clew's knows.
#ifndef GADGET_H
#define GADGET_H
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

#include "gadget_shapes.h"

typedef struct gadget gadget;
enum gadget_mode { GADGET_QUIET, GADGET_LOUD = 5 };
typedef enum { GADGET_RED = 1, GADGET_GREEN = 2, GADGET_BLUE = 4, GADGET_WHITE = 7 } gadget_colours;
typedef gadget_colours *gadget_palette;

gadget *gadget_open(const char *path, enum gadget_mode mode, gadget_colours colours);
int gadget_place(gadget *own, const struct gadget_frame *frame, struct gadget_point *corner);
long gadget_fill(gadget *own, void *area, size_t area_len) __attribute__((__access__(__write_only__, 2, 3)));
int gadget_sum(const int *numbers, unsigned n) __attribute__((__access__(__read_only__, 1, 2)));
int gadget_stat(FILE *log, struct stat *found);
enum gadget_mode gadget_close(gadget *own);
#endif
