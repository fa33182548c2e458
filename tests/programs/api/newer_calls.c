// Makes calls with structures that are newer than most headers, and such whose arguments depend on a command.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <unistd.h>

int main(void) {
    uint64_t rules[3] = {1 << 2 | 1 << 15, 2, 1};
    uint64_t port[2] = {1, 8080};
    struct {
        uint64_t rights;
        int32_t parent;
    } __attribute__((packed)) beneath = {1 << 3, -1};
    uint64_t range[2] = {0, 4096}, cached[5] = {0};
    struct {
        uint64_t value;
        uint32_t size, flags;
    } xattr = {(uintptr_t) "the value", 9, 1};
    struct {
        uint64_t flags;
        uint32_t sizes[4];
    } attributes = {0x20, {1, 2, 3, 4}};
    struct {
        uint32_t type, key, value, entries, flags, inner, node;
        char name[16];
    } map = {1, 4, 8, 16, 0, 0, 0, "the_map"};
    uint64_t peek[2] = {7, (uint64_t)3 << 32 | 1};
    uint64_t quota[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct msqid_ds queue;
    struct shmid_ds memory;
    struct semid_ds set;

    syscall(444, rules, 24L, 0x80000000L);
    syscall(445, -1L, 2L, port, 0L);
    syscall(445, -1L, 1L, &beneath, 0L);
    syscall(451, -1L, range, cached, 0L);
    syscall(463, -1L, "/nothing", 0L, "user.one", &xattr, 16L);
    syscall(469, -1L, "/nothing", &attributes, 24L, 0L);
    syscall(321, 0L, &map, 44L);
    syscall(101, 0x4209L, -1L, peek, &peek);
    syscall(101, 0x4200L, -1L, 0L, 0x100001L);
    syscall(179, 0x80000800L, "/dev/nothing", 5L, quota);
    syscall(250, 2L, -3L, "the new key", 11L);
    syscall(250, 10L, -3L, "user", "no such key", 0L);
    int queue_id = msgget(IPC_PRIVATE, 0600), memory_id = shmget(IPC_PRIVATE, 4096, 0600), set_id = semget(IPC_PRIVATE, 2, 0600);
    msgctl(queue_id, IPC_STAT, &queue);
    msgctl(queue_id, IPC_RMID, NULL);
    shmctl(memory_id, IPC_STAT, &memory);
    shmctl(memory_id, IPC_RMID, NULL);
    semctl(set_id, 1, SETVAL, 3);
    semctl(set_id, 0, IPC_STAT, &set);
    semctl(set_id, 0, IPC_RMID);
    return 0;
}
