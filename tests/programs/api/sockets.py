"""Talks to itself over sockets of several kinds: streams, datagrams, descriptors in messages, waiting in each way."""

from __future__ import annotations

import os
import select
import socket

server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
peer, _ = server.accept()
client.sendall(b"hello")
assert peer.recv(9) == b"hello"
peer.setsockopt(socket.SOL_TCP, socket.TCP_NODELAY, 1)
assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
assert select.select([peer], [client], [], 0.01) == ([], [client], [])

left, right = socket.socketpair()
socket.send_fds(left, [b"x"], [0, 1])
assert len(socket.recv_fds(right, 9, 2)[1]) == 2
waiting = select.epoll()
waiting.register(right, select.EPOLLIN)
left.sendmsg([b"a", b"b"])
assert waiting.poll(0.01) == [(right.fileno(), select.EPOLLIN)]
assert right.recvmsg(9)[0] == b"ab"

datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind(("127.0.0.1", 0))
datagrams.sendto(b"me", datagrams.getsockname())
assert datagrams.recvfrom(9)[0] == b"me"
os.writev(1, [b"a\n", b"b\n"])
