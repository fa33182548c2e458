"""Uses handles of libraries: two ends of a secured connection, in two threads; a database; compression."""

from __future__ import annotations

import socket
import sqlite3
import ssl
import threading
import zlib


def context_of(protocol: ssl._SSLMethod) -> ssl.SSLContext:
    """Without certificates, which nobody has here."""
    context = ssl.SSLContext(protocol)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AECDH-AES256-SHA:@SECLEVEL=0")
    return context


def serve(listener: socket.socket) -> None:
    peer, _ = listener.accept()
    with context_of(ssl.PROTOCOL_TLS_SERVER).wrap_socket(peer, server_side=True) as secured:
        assert secured.recv(5) == b"hello"
        secured.sendall(b"served")


def secure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        plain = socket.create_connection(listener.getsockname())
        with context_of(ssl.PROTOCOL_TLS_CLIENT).wrap_socket(plain) as secured:
            secured.sendall(b"hello")
            assert secured.recv(6) == b"served"
        thread.join()


def keep() -> None:
    database = sqlite3.connect("one.db")
    with database:
        database.execute("create table things(name text)")
        database.executemany("insert into things values(?)", [("one",), ("two",)])
    assert database.execute("select count(*) from things").fetchone() == (2,)
    database.close()


def press() -> None:
    packing, unpacking = zlib.compressobj(), zlib.decompressobj()
    packed = packing.compress(b"x" * 1000) + packing.flush()
    assert unpacking.decompress(packed) + unpacking.flush() == b"x" * 1000


secure()
keep()
press()
