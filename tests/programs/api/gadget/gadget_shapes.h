// Structures of the gadget's, simple ones and others.
struct gadget_point {
    int x;
    short y;
};

struct gadget_frame {
    const char *title;
    struct gadget_point corner;
    char tag[8];
    unsigned long ids[2];
    unsigned is_open : 1;
    union {
        int number;
        float share;
    } either;
    void (*on_move)(int);
};
