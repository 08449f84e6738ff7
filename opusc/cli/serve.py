"""`opusc serve`: the controller of a running job."""

import argparse
import asyncio
import json
import re
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from opusc.cli import terminal
from opusc.cli.compiling import Messages, compile_one, reported
from opusc.cli.options import delays, program_options
from opusc.cli.reaching import reached, reaching_options
from opusc.cli.tables import labelled, plural
from opusc.cli.terminal import UsageError
from opusc.diagnostics import Diagnostics

if TYPE_CHECKING:
    from opusc.control.serve.clients import Patience
    from opusc.control.serve.hosts import Hosts
    from opusc.control.serve.metrics import Metrics
    from opusc.control.serve.rails import Switches
    from opusc.control.serve.server import Server
    from opusc.plan.plan import Plan

__all__ = ["DESCRIPTION", "EPILOG", "add_arguments", "run"]

DESCRIPTION = """\
Serve a running job with a proved plan: speak the published controller's TCP
protocol with its ranks, wait for all that take part in a collective, change the
switches of their rail to the circuits that it needs, and tell them. Without
--apply the switches are emulated, with the time that a change takes."""

EPILOG = """\
examples:
  opusc serve cluster.opus --listen :1234 --hosts nodes.txt
  opusc serve cluster.opus --listen :1234 --hosts nodes.txt --delay 10ms
  opusc serve cluster.opus --listen :1234 --hosts nodes.txt --apply

`docs/serve.md` has the protocol, what happens when something fails, and the
metrics. Ctrl-C ends it.
"""

#: Files besides the connections of ranks: sources, switches, logs, and room for connections that are on their way out.
_OWN_FILES = 64
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:]*\]|[^:\s]*):([0-9]{1,5})")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a program")
    parser.add_argument(
        "--listen", metavar="HOST:PORT", type=_address, default=("127.0.0.1", 1234),
        help="where ranks connect (default: 127.0.0.1:1234; the shim knows 1234 only)",
    )  # fmt: skip
    parser.add_argument("--metrics", metavar="HOST:PORT", type=_address, help="answer GET /metrics there (Prometheus)")
    parser.add_argument(
        "--delay", metavar="TIME", type=delays, help="what an emulated change takes (default: as the switches state it)"
    )
    parser.add_argument("--hosts", metavar="FILE", help="addresses of the nodes, a line each, in the program's order")
    parser.add_argument(
        "--communicators", metavar="FILE", help='ranks by communicator, JSON: {"dp_0": [0, 8, 16, 24], ...}'
    )
    parser.add_argument(
        "--wait", metavar="TIME", type=delays, help="end the connections of a request that has waited so long (10 min)"
    )
    parser.add_argument(
        "--rejoin", metavar="TIME", type=delays, help="how long a rank may be away while others wait for it (30 s)"
    )
    parser.add_argument("--apply", action="store_true", help="change the real switches")
    reaching_options(parser)
    program_options(parser)


def run(options: argparse.Namespace) -> int:
    return reported(options, _run)


def _run(options: argparse.Namespace, messages: Messages) -> int:
    outcome = compile_one(options.file, options, messages)
    if outcome.compilation is None:
        return outcome.code
    plan, sink = outcome.compilation.plan, Diagnostics()
    members, hosts = _members(options.communicators), _hosts(options.hosts, plan)
    metrics = _metrics(options)
    switches = _switches(plan, options, sink)
    messages.add(list(sink))
    if switches is None:
        return 1
    _allow_many_files(plan.world)
    from opusc.control.serve.server import Server

    server = Server(plan, switches, metrics, _log, members, hosts, _patience(options))
    try:
        asyncio.run(_serve(server, options))
    except OSError as error:
        raise UsageError(f"cannot listen at {_shown(options.listen)}: {error.strerror or error}") from error
    finally:
        close = getattr(switches, "close", None)
        if close is not None:
            close()
    return 0


async def _serve(server: "Server", options: argparse.Namespace) -> None:
    plan = server.plan
    host, port = options.listen
    port = await server.start(host, port)
    rails = plural(len(plan.model.fabric.rails), "rail")
    what = "real switches" if options.apply else "emulated switches"
    where = f"{plan.model.job.name} at {_shown((host, port))}: {plan.world:,} ranks, {rails}, {what}"
    sys.stdout.write(labelled("serving", where, terminal.width()))
    sys.stdout.flush()
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: Ctrl-C raises KeyboardInterrupt there
            loop.add_signal_handler(number, ended.set)
    await ended.wait()
    await server.stop()


def _switches(plan: "Plan", options: argparse.Namespace, sink: Diagnostics) -> "Switches | None":
    """What changes the rails; None when the sink says why nothing can."""
    if options.apply:
        from opusc.control.serve.real import Real

        stations, sessions, patience = reached(plan, options, sink)
        return None if sink.has_errors else Real(plan, stations, sessions, patience)
    from opusc.control.serve.rails import Emulated
    from opusc.schedule.job import dark

    delay = options.delay[0] if options.delay else dark(plan, sink)
    return None if delay is None else Emulated(delay / 10**12)


def _metrics(options: argparse.Namespace) -> "Metrics":
    from opusc.control.serve.metrics import Counted, Uncounted

    if options.metrics is None:
        return Uncounted()
    try:
        counted = Counted()
    except ImportError as error:
        raise UsageError("--metrics needs prometheus_client: pip install 'opusc[serve]'") from error
    try:
        counted.listen(*options.metrics)
    except OSError as error:
        raise UsageError(f"cannot listen at {_shown(options.metrics)}: {error.strerror or error}") from error
    return counted


def _members(path: str | None) -> dict[str, list[int]]:
    if path is None:
        return {}
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read `{path}`: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"`{path}` is no JSON: {error}") from error
    fits = isinstance(found, dict) and all(
        isinstance(ranks, list) and ranks and all(type(rank) is int for rank in ranks) for ranks in found.values()
    )
    if not fits:
        raise UsageError(f'`{path}` should be an object of lists of ranks: {{"dp_0": [0, 8, 16, 24]}}')
    return dict(found)


def _hosts(path: str | None, plan: "Plan") -> "Hosts | None":
    from opusc.control.serve.hosts import Hosts, HostsError

    if path is None:
        return None
    try:
        return Hosts(plan, Path(path).read_text(encoding="utf-8").splitlines())
    except OSError as error:
        raise UsageError(f"cannot read `{path}`: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"`{path}`: {error}" if isinstance(error, HostsError) else f"`{path}` is no text") from error


def _patience(options: argparse.Namespace) -> "Patience":
    from opusc.control.serve.clients import Patience

    usual = Patience()
    return Patience(
        wait=options.wait[0] / 10**12 if options.wait else usual.wait,
        rejoin=options.rejoin[0] / 10**12 if options.rejoin else usual.rejoin,
    )


def _allow_many_files(ranks: int) -> None:
    """A connection is a file: allow as many as the system lets us. Raises UsageError where the job has more ranks."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        soft = most
    if soft != resource.RLIM_INFINITY and soft < ranks + _OWN_FILES:
        raise UsageError(
            f"{ranks:,} ranks need {ranks + _OWN_FILES:,} open files, and the system allows {soft:,}: raise the "
            "hard limit (`ulimit -Hn`, LimitNOFILE= of systemd)"
        )


def _log(text: str) -> None:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    print(f"{stamp} {text}", file=sys.stderr, flush=True)


def _address(text: str) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(text)
    if match is None or not int(match[2]) < 65536:
        raise argparse.ArgumentTypeError(f"`{text}` should be HOST:PORT, for example 0.0.0.0:1234")
    return match[1].strip("[]") or "0.0.0.0", int(match[2])


def _shown(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
