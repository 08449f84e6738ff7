"""SONiC's CONFIG_DB is Redis, database 4: patches applied in one MULTI/EXEC give each configuration."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from opusc.backends.switch_files import slug
from opusc.plan.configurations import walk
from opusc.plan.plan import Plan
from tests.real.conftest import free_port, module, program

CONFIG_DB = 4
Files = Callable[[str], tuple[Plan, Path]]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Any]:
    redis = module("redis")
    port = free_port()
    command = [
        program("redis-server"),
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--dir",
        str(tmp_path),
    ]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    client = redis.Redis(port=port, db=CONFIG_DB, decode_responses=True)
    for _ in range(100):
        try:
            client.ping()
            break
        except redis.ConnectionError:
            time.sleep(0.05)
    yield client
    client.close()
    server.terminate()
    server.wait(10)


def table(client: Any) -> dict[str, dict[str, str]]:
    return {key.split("|")[1]: client.hgetall(key) for key in client.keys("OCS_CROSS_CONNECT|*")}


def apply(client: Any, steps: list[dict[str, Any]]) -> None:
    """One transaction, as gNMI on SONiC commits a batch."""
    with client.pipeline(transaction=True) as batch:
        for step in steps:
            name = step["path"].removeprefix("/OCS_CROSS_CONNECT").lstrip("/")
            if not name:
                for key, row in step["value"].items():
                    batch.hset(f"OCS_CROSS_CONNECT|{key}", mapping=row)
            elif step["op"] == "remove":
                batch.delete(f"OCS_CROSS_CONNECT|{name}")
            else:
                batch.hset(f"OCS_CROSS_CONNECT|{name}", mapping=step["value"])
        batch.execute()


def test_patches_lead_from_each_configuration_to_the_next(files: Files, database: Any) -> None:
    plan, folder = files("sonic")
    order = [slug(c.name) for c in walk(plan)]
    apply(database, json.loads((folder / "patch" / f"configuration-{order[0]}.json").read_text()))
    for before, after in zip(order, [*order[1:], order[0]], strict=True):
        apply(database, json.loads((folder / "patch" / f"change-{before}-to-{after}.json").read_text()))
        wanted = json.loads((folder / "config-db" / f"configuration-{after}.json").read_text())["OCS_CROSS_CONNECT"]
        assert table(database) == wanted
        assert wanted


def test_jsonpatch_applies_the_same_patches(files: Files) -> None:
    jsonpatch = module("jsonpatch")
    plan, folder = files("sonic")
    order = [slug(c.name) for c in walk(plan)]
    start = (folder / "config-db" / f"configuration-{order[0]}.json").read_text()
    document = json.loads(start)
    for before, after in zip(order, [*order[1:], order[0]], strict=True):
        text = (folder / "patch" / f"change-{before}-to-{after}.json").read_text()
        document = jsonpatch.JsonPatch.from_string(text).apply(document)
        assert document == json.loads((folder / "config-db" / f"configuration-{after}.json").read_text())
