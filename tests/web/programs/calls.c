/* Two threads that open, read, write and close files, by functions and by system calls, some of which fail; and a child
   that inherits a pipe. Writes to the folder that it is told. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *folder;

static void *work(void *argument) {
    char name[4096], text[64];
    snprintf(name, sizeof name, "%s/file-%ld", folder, (long)argument);
    for (int turn = 0; turn < 30; turn++) {
        FILE *file = fopen(name, turn ? "a+" : "w+");
        if (file == NULL) {
            exit(2);
        }
        fputs("a line\n", file);
        fclose(file);
        int fd = open(name, O_RDONLY);
        if (read(fd, text, 7) != 7) {
            exit(3);
        }
        close(fd);
        if (open("/nothing/here", O_RDONLY) >= 0) {
            exit(4);
        }
    }
    return NULL;
}

int main(int n_arguments, char **arguments) {
    pthread_t threads[2];
    int ends[2];
    char byte;
    folder = n_arguments > 1 ? arguments[1] : "/tmp";
    for (long i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, work, (void *)i);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    if (pipe(ends) != 0) {
        return 5;
    }
    pid_t child = fork();
    if (child == 0) {
        _exit(write(ends[1], "x", 1) == 1 ? 0 : 6);
    }
    int status = 0;
    if (read(ends[0], &byte, 1) != 1 || waitpid(child, &status, 0) != child) {
        return 7;
    }
    return status;
}
