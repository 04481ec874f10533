"""A bad network: a proxy on this machine's loopback that cuts connections at random, or stops to pass bytes on.

    with cutting(server.port, seed=1, after=(100, 5000)) as proxy:
        Client(proxy.url)

A connection is cut after a random number of bytes from the server, in the middle of whatever they are.
"""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_CHUNK = 4096


class Proxy:
    """Passes bytes between clients and a server, as long as it likes."""

    def __init__(self, port: int, seed: int, after: tuple[int, int] | None) -> None:
        self._port = port
        self._dice = random.Random(seed)
        #: bytes from the server after which a connection is cut; None: never
        self.after = after
        #: connections that were cut
        self.cuts = 0
        #: while it is clear, nothing that the server sends is passed on
        self.flows = threading.Event()
        self.flows.set()
        self._closing = False
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            try:
                server = socket.create_connection(("127.0.0.1", self._port), timeout=10)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            # small, so that what a stalled reader does not take soon fills up the server's side
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            with self._lock:
                self._open |= {client, server}
                length = None if self.after is None else self._dice.randint(*self.after)
            threading.Thread(target=self._up, args=(client, server), daemon=True).start()
            threading.Thread(target=self._down, args=(client, server, length), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while piece := client.recv(_CHUNK):
                server.sendall(piece)
        except OSError:
            pass  # cut, or gone
        self._end(client, server)

    def _down(self, client: socket.socket, server: socket.socket, length: int | None) -> None:
        try:
            while piece := server.recv(_CHUNK):
                self.flows.wait()
                if length is not None and len(piece) >= length:
                    client.sendall(piece[:length])
                    self.cuts += 1
                    break
                client.sendall(piece)
                length = None if length is None else length - len(piece)
        except OSError:
            pass  # gone
        self._end(client, server)

    def _end(self, *sockets: socket.socket) -> None:
        for one in sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it is not connected any more
            one.close()
        with self._lock:
            self._open -= set(sockets)

    def close(self) -> None:
        self.flows.set()
        # an accept that waits is not ended by close alone
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)
        with self._lock:
            left = list(self._open)
        self._end(*left)


@contextmanager
def cutting(port: int, *, seed: int = 0, after: tuple[int, int] | None = None) -> Iterator[Proxy]:
    """A proxy before a server."""
    proxy = Proxy(port, seed, after)
    try:
        yield proxy
    finally:
        proxy.close()
