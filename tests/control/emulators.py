"""Emulators of switches, for tests of what drives them. They are ours: what real switches do beyond the messages that
public client code shows is not known, and not claimed.

Each holds cross-connects, `pairs`, and refuses what a crossbar cannot do. `faults` are called with every change that is
asked for, and may raise, answer wrongly or change `pairs` on their own.
"""

import json
import re
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Pairs = set[tuple[str, str]]


class Drop(Exception):
    """The connection breaks."""


class Emulated:
    """What a switch holds, and what goes wrong with it."""

    def __init__(self) -> None:
        self.pairs: Pairs = set()
        self.asked: list[str] = []  # changes, in words
        self.fault: Callable[[Emulated, str], str | None] | None = None  # an error text, None for none
        self.port = 0
        self._lock = threading.Lock()

    def change(self, words: str, gone: Pairs, come: Pairs) -> str | None:
        """Carry out a change; the reason when it is refused."""
        with self._lock:
            self.asked.append(words)
            if self.fault is not None and (said := self.fault(self, words)) is not None:
                return said
            left = self.pairs - gone
            for side in (0, 1):
                if {pair[side] for pair in left} & {pair[side] for pair in come}:
                    return "port in use"
            self.pairs = left | come
            return None


# --- SCPI ----------------------------------------------------------------------------------------


@contextmanager
def scpi(port: int = 0) -> Iterator[Emulated]:
    """A Polatis switch over SCPI on the loopback interface."""
    switch = Emulated()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            errors: list[str] = []
            for raw in self.rfile:
                line = raw.decode().strip()
                try:
                    answer = self.answer(line, errors)
                except Drop:
                    return
                if answer is not None:
                    self.wfile.write(answer.encode() + b"\n")

        def answer(self, line: str, errors: list[str]) -> str | None:
            if line == ":syst:err:all?":
                said = ",".join(errors) or '0,"No error"'
                errors.clear()
                return said
            if line == ":oxc:swit:conn:stat?":
                pairs = sorted(switch.pairs, key=lambda pair: int(pair[0]))
                return ",".join("(@" + ",".join(pair[side] for pair in pairs) + ")" for side in (0, 1))
            match = re.fullmatch(r":oxc:swit:conn:(add|sub|only) \(@([\d,]*)\),\(@([\d,]*)\)", line)
            if match is None:
                errors.append('-113,"Undefined header"')
                return None
            pairs = set(zip(match[2].split(","), match[3].split(","), strict=True))
            gone, come = {"add": (set(), pairs), "sub": (pairs, set()), "only": (set(switch.pairs), pairs)}[match[1]]
            if (wrong := switch.change(line, gone, come)) is not None:
                errors.append(f'-200,"{wrong}"')
            return None

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    with Server(("127.0.0.1", port), Handler) as server:
        switch.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield switch
        server.shutdown()


# --- HTTP ----------------------------------------------------------------------------------------


@contextmanager
def http(context: Any = None, password: str | None = None) -> Iterator[Emulated]:
    """A switch over HTTP: RESTCONF as a Polatis, and /rest as a Calient. With `context`, over TLS."""
    switch = Emulated()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *words: object) -> None:
            pass

        def reply(self, status: int, body: object = None) -> None:
            data = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def body(self) -> Any:
            return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

        def let_in(self) -> bool:
            if password is not None and self.headers.get("Authorization") != password:
                self.reply(401)
                return False
            return True

        def do_GET(self) -> None:
            if not self.let_in():
                return
            if self.path.startswith("/rest/"):
                return self.reply(200, [{"half1": {"conn": f"{a}>{b}"}} for a, b in sorted(switch.pairs)])
            if not switch.pairs:
                return self.reply(404)
            rows = [{"ingress": int(a), "egress": int(b)} for a, b in sorted(switch.pairs)]
            self.reply(200, {"optical-switch:cross-connects": {"pair": rows}})

        def do_PUT(self) -> None:
            if not self.let_in():
                return
            rows = self.body()["optical-switch:cross-connects"]["pair"]
            come = {(str(row["ingress"]), str(row["egress"])) for row in rows}
            wrong = switch.change("PUT", set(switch.pairs), come)
            self.reply(204 if wrong is None else 409, wrong and {"error": wrong})

        def do_POST(self) -> None:
            if not self.let_in():
                return
            rows = self.body()
            if self.path.endswith("bdel"):
                wrong = switch.change("bdel", {tuple(row["conn"].split(">")) for row in rows}, set())
            else:
                wrong = switch.change("badd", set(), {(row["in"], row["out"]) for row in rows})
            self.reply(200, [{"response": {"status": "1" if wrong is None else "0", "message": wrong}}])

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    switch.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield switch
    server.shutdown()
    server.server_close()
