/* A library of boxes for letters, which nobody but a description knows; built with -DLIBRARY. And a program that uses it:
   boxes are files in its folder, what is sent to one is written to that. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct letter {
    int kind;
    unsigned size;
    union {
        const char *text;
        long number;
    };
};

struct box {
    int file, n_users;
};

struct box *box_open(const char *path, unsigned how);
struct box *box_share(struct box *box);
long box_send(struct box *box, const struct letter *letters, int n);
int box_count(struct box *box, int *n_bytes);
void box_close(struct box *box);

#ifdef LIBRARY

struct box *box_open(const char *path, unsigned how) {
    int file = open(path, O_RDWR | (how & 1 ? O_CREAT : 0), 0600);
    if (file < 0) return NULL;
    struct box *box = calloc(1, sizeof *box);
    *box = (struct box){file, 1};
    return box;
}

/* Another handle of the same. */
struct box *box_share(struct box *box) {
    struct box *other = calloc(1, sizeof *other);
    *other = (struct box){dup(box->file), 1};
    return other;
}

long box_send(struct box *box, const struct letter *letters, int n) {
    long sent = 0;
    for (int place = 0; place < n; place++) {
        const void *bytes = letters[place].kind == 1 ? (const void *)letters[place].text : &letters[place].number;
        sent += write(box->file, bytes, letters[place].size);
    }
    return sent;
}

int box_count(struct box *box, int *n_bytes) {
    *n_bytes = (int)lseek(box->file, 0, SEEK_END);
    return *n_bytes ? 0 : -7;
}

void box_close(struct box *box) {
    close(box->file);
    free(box);
}

#else

int main(void) {
    struct letter letters[] = {{1, 5, {.text = "hello"}}, {2, 8, {.number = -3}}, {9, 0, {.number = 4}}};
    int n_bytes;
    if (box_open("none", 0)) return 1;
    struct box *box = box_open("inbox", 1 | 4), *other;
    if (box_count(box, &n_bytes) != -7) return 1;
    other = box_share(box);
    if (box_send(other, letters, 3) != 13) return 1;
    box_close(other);
    if (box_count(box, &n_bytes) || n_bytes != 13) return 1;
    box_close(box);
    return 0;
}

#endif
