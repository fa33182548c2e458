/* A library loaded late, with a thread-local variable of its own. */
static _Thread_local int local = 40;
int *library_local(void);
int *library_local(void) { return &local; }
