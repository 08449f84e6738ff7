"""A gNMI target takes the SetRequests through a real client, and holds what each configuration says."""

import json
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest

from opusc.backends.switch_files import slug
from opusc.plan.configurations import walk
from opusc.plan.plan import Plan
from tests.real.conftest import free_port, module

Files = Callable[[str], tuple[Plan, Path]]


@pytest.fixture
def target() -> Iterator[tuple[int, dict[str, Any]]]:
    """A server on the loopback interface with the tree `connections`: name -> config. Refuses what is taken."""
    grpc = module("grpc")
    services = module("pygnmi.spec.v080.gnmi_pb2_grpc")
    messages = module("pygnmi.spec.v080.gnmi_pb2")
    tree: dict[str, Any] = {}

    class Target(services.gNMIServicer):  # type: ignore[misc, name-defined]
        def Capabilities(self, request: Any, context: Any) -> Any:
            return messages.CapabilityResponse(gNMI_version="0.8.0", supported_encodings=[messages.JSON_IETF])

        def Set(self, request: Any, context: Any) -> Any:
            """Deletes, then replaces, then updates, all or nothing (gNMI specification, 3.4)."""
            new = dict(tree)
            for path in request.delete:
                name = path.elem[-1].key["name"]
                if name not in new:
                    context.abort(grpc.StatusCode.NOT_FOUND, f"no connection {name}")
                del new[name]
            for update in request.replace:
                new = {row["name"]: row["config"] for row in json.loads(update.val.json_ietf_val)["port-connection"]}
            for update in request.update:
                row = json.loads(update.val.json_ietf_val)
                new[row["name"]] = row["config"]
            for side in ("input-port-name", "output-port-name"):
                if len({config[side] for config in new.values()}) < len(new):
                    context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"an {side} is used twice")
            tree.clear()
            tree.update(new)
            return messages.SetResponse()

    port = free_port()
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    services.add_gNMIServicer_to_server(Target(), server)
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    yield port, tree
    server.stop(0)


def send(port: int, text: str) -> None:
    client = module("pygnmi.client").gNMIclient
    request = json.loads(text)
    steps = {
        "delete": request.get("delete"),
        "replace": [(step["path"], step["val"]) for step in request.get("replace", [])] or None,
        "update": [(step["path"], step["val"]) for step in request.get("update", [])] or None,
    }
    with client(target=("127.0.0.1", port), username="", password="", insecure=True) as session:
        session.set(**{k: v for k, v in steps.items() if v}, encoding="json_ietf")


def wanted(folder: Path, name: str) -> dict[str, Any]:
    request = json.loads((folder / "set-request" / f"configuration-{name}.json").read_text())
    return {row["name"]: row["config"] for row in request["replace"][0]["val"]["port-connection"]}


def test_a_target_follows_the_changes_of_a_schedule(files: Files, target: tuple[int, dict[str, Any]]) -> None:
    port, tree = target
    plan, folder = files("ocp-gnmi")
    order = [slug(c.name) for c in walk(plan)]
    send(port, (folder / "set-request" / f"configuration-{order[0]}.json").read_text())
    assert tree == wanted(folder, order[0]) != {}
    for before, after in zip(order, [*order[1:], order[0]], strict=True):
        send(port, (folder / "set-request" / f"change-{before}-to-{after}.json").read_text())
        assert tree == wanted(folder, after)


def test_a_target_refuses_a_change_from_another_state(files: Files, target: tuple[int, dict[str, Any]]) -> None:
    port, tree = target
    plan, folder = files("ocp-gnmi")
    first, second = (slug(c.name) for c in walk(plan))
    send(port, (folder / "set-request" / f"configuration-{second}.json").read_text())
    with pytest.raises(Exception, match=r"no connection|NOT_FOUND"):
        send(port, (folder / "set-request" / f"change-{first}-to-{second}.json").read_text())
    assert tree == wanted(folder, second)
