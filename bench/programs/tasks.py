"""A small operating system of objects that pass packets to each other: method calls, attributes, subclasses."""

import sys


class Packet:
    def __init__(self, link: "Packet | None", kind: int) -> None:
        self.link = link
        self.kind = kind
        self.data = [0] * 4


class Task:
    def __init__(self, scheduler: "Scheduler", name: int) -> None:
        self.scheduler = scheduler
        self.name = name
        self.queue: Packet | None = None
        self.handled = 0

    def append(self, packet: Packet) -> None:
        packet.link = self.queue
        self.queue = packet

    def run(self) -> None:
        packet = self.queue
        if packet is None:
            self.idle()
            return
        self.queue = packet.link
        packet.link = None
        self.handled += 1
        self.handle(packet)

    def idle(self) -> None:
        self.scheduler.rest += 1

    def handle(self, packet: Packet) -> None:
        raise NotImplementedError


class Worker(Task):
    def handle(self, packet: Packet) -> None:
        for index in range(4):
            packet.data[index] = (packet.data[index] * 31 + self.name + index) & 0xFFFF
        self.scheduler.send(packet, (self.name + packet.data[0]) % len(self.scheduler.tasks))


class Device(Task):
    waiting = 0

    def handle(self, packet: Packet) -> None:
        self.waiting += packet.kind
        self.scheduler.send(packet, self.waiting % len(self.scheduler.tasks))

    def idle(self) -> None:
        super().idle()
        self.waiting ^= 5


class Scheduler:
    def __init__(self) -> None:
        self.rest = 0
        self.tasks: list[Task] = [(Worker if name % 2 else Device)(self, name) for name in range(6)]
        for kind in range(9):
            self.tasks[kind % 6].append(Packet(None, kind))

    def send(self, packet: Packet, name: int) -> None:
        self.tasks[name].append(packet)

    def run(self, rounds: int) -> tuple[int, ...]:
        for _ in range(rounds):
            for task in self.tasks:
                task.run()
        return (self.rest, *(task.handled for task in self.tasks))


print(*Scheduler().run(int(sys.argv[1])))
