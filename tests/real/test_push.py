"""`opusc push` against real servers: netconfd behind sshd, Redis, and a gNMI target over TLS."""

import json
import subprocess
import time
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest

from opusc.cli.main import main
from opusc.plan.configurations import configurations
from opusc.plan.plan import Plan
from opusc.plan.transitions import held
from tests.real.conftest import PROGRAM, NetconfServer, free_port, module, program

Capture = pytest.CaptureFixture[str]


def written(folder: Path, driver: str, address: str) -> Path:
    text = PROGRAM.format(driver=f'{driver}, address = "{address}"')
    (folder / "p.opus").write_text(text)
    return folder / "p.opus"


def wanted(path: Path, phase: str, *, sided: bool = False) -> set[tuple[str, str]]:
    """What a configuration asks of the switch, by the names of its ports."""
    import opusc

    plan: Plan = opusc.compile(path)
    [found] = [c for c in configurations(plan) if c.name == phase]
    radix = plan.switches[0].kind.radix
    pairs = [(a, b) for _, a, b in held(plan, found.parts).tolist()]
    return {(f"{a}A", f"{b - radix}B") if sided else (str(a), str(b)) for a, b in pairs}


# --- NETCONF -------------------------------------------------------------------------------------


def test_netconf_follows_a_schedule_once_its_host_key_is_known(
    netconf_server: NetconfServer, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "polatis", f"127.0.0.1:{netconf_server.port}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OPUSC_USER", "root")
    monkeypatch.setenv("OPUSC_SSH_KEY", str(netconf_server.user_key))
    order = ["push", str(path), "--timeout", "10s"]
    assert main([*order, "--phase", "dp", "--apply"]) == 1
    assert "error[OPUS741]: rails.rail[0] cannot be read: its host key is not known" in capsys.readouterr().err
    known = tmp_path / "known_hosts"
    kind, key, *_ = netconf_server.host_key.read_text().split()
    known.write_text(f"[127.0.0.1]:{netconf_server.port} {kind} {key}\n")
    order += ["--known-hosts", str(known)]
    assert main([*order, "--schedule", "--times", "2", "--apply"]) == 0
    assert main([*order, "--phase", "dp"]) == 0
    assert "  12       16     0       0" in capsys.readouterr().out
    assert main([*order, "--phase", "pp"]) == 0
    assert "   0        0    12       0" in capsys.readouterr().out, "read back, the last configuration is there"


def test_another_host_key_is_refused(
    netconf_server: NetconfServer, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "polatis", f"127.0.0.1:{netconf_server.port}")
    monkeypatch.setenv("OPUSC_USER", "root")
    monkeypatch.setenv("OPUSC_SSH_KEY", str(netconf_server.user_key))
    known = tmp_path / "known_hosts"
    kind, key, *_ = netconf_server.user_key.with_suffix(".pub").read_text().split()
    known.write_text(f"[127.0.0.1]:{netconf_server.port} {kind} {key}\n")
    assert main(["push", str(path), "--phase", "dp", "--apply", "--known-hosts", str(known)]) == 1
    assert "OPUS741" in capsys.readouterr().err


def test_a_key_that_may_not_log_in_is_told(
    netconf_server: NetconfServer, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "polatis", f"127.0.0.1:{netconf_server.port}")
    subprocess.run(
        [program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "stranger")], check=True
    )
    monkeypatch.setenv("OPUSC_USER", "root")
    monkeypatch.setenv("OPUSC_SSH_KEY", str(tmp_path / "stranger"))
    assert main(["push", str(path), "--phase", "dp", "--apply", "--insecure"]) == 1
    assert "OPUS742" in capsys.readouterr().err


# --- CONFIG_DB -----------------------------------------------------------------------------------


@pytest.fixture
def database(tmp_path: Path) -> Iterator[tuple[int, Any]]:
    """A Redis server that asks for a password, and a client of database 4."""
    redis = module("redis")
    port = free_port()
    command = [program("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    server = subprocess.Popen(
        [*command, "--requirepass", "secret", "--dir", str(tmp_path)], stdout=subprocess.DEVNULL
    )
    client = redis.Redis(port=port, db=4, decode_responses=True, password="secret")
    for _ in range(100):
        try:
            client.ping()
            break
        except redis.ConnectionError:
            time.sleep(0.05)
    yield port, client
    client.close()
    server.terminate()
    server.wait(10)


def pairs_of(client: Any) -> set[tuple[str, str]]:
    rows = [client.hgetall(key) for key in client.keys("OCS_CROSS_CONNECT|*")]
    return {(row["a_side"], row["b_side"]) for row in rows}


def test_config_db_follows_a_schedule(
    database: tuple[int, Any], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, client = database
    path = written(tmp_path, "sonic", f"127.0.0.1:{port}")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["push", str(path), "--phase", "dp", "--apply"]) == 1
    assert "OPUS742" in capsys.readouterr().err
    monkeypatch.setenv("OPUSC_PASSWORD", "secret")
    client.hset("PORT|Ethernet0", mapping={"lanes": "1"})
    assert main(["push", str(path), "--schedule", "--times", "3", "--apply"]) == 0
    assert pairs_of(client) == wanted(path, "pp", sided=True)
    assert client.hgetall("PORT|Ethernet0") == {"lanes": "1"}, "other tables are nobody's business"
    taken = next(iter(client.keys("OCS_CROSS_CONNECT|*")))
    client.delete(taken)
    assert main(["push", str(path), "--phase", "pp"]) == 0
    assert "   0        1    11       0" in capsys.readouterr().out
    assert main(["push", str(path), "--phase", "pp", "--apply"]) == 0
    assert pairs_of(client) == wanted(path, "pp", sided=True)


# --- gNMI ----------------------------------------------------------------------------------------


@pytest.fixture
def target(tmp_path: Path) -> Iterator[tuple[int, dict[str, Any], Path]]:
    """A gNMI target over TLS for 127.0.0.1: its port, its connections by name, its certificate."""
    grpc = module("grpc")
    services = module("pygnmi.spec.v080.gnmi_pb2_grpc")
    messages = module("pygnmi.spec.v080.gnmi_pb2")
    tree: dict[str, Any] = {}
    subprocess.run(
        [program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-subj", "/CN=switch", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2",
         "-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")],
        check=True, capture_output=True,
    )  # fmt: skip

    class Target(services.gNMIServicer):  # type: ignore[misc, name-defined]
        def Capabilities(self, request: Any, context: Any) -> Any:
            return messages.CapabilityResponse(gNMI_version="0.8.0", supported_encodings=[messages.JSON_IETF])

        def Get(self, request: Any, context: Any) -> Any:
            rows = [{"name": name, "config": config} for name, config in tree.items()]
            value = json.dumps({"ocp-ocs-optical-switch-connections:port-connection": rows}).encode()
            update = messages.Update(path=request.path[0], val=messages.TypedValue(json_ietf_val=value))
            return messages.GetResponse(notification=[messages.Notification(update=[update])])

        def Set(self, request: Any, context: Any) -> Any:
            new = dict(tree)
            for path in request.delete:
                del new[path.elem[-1].key["name"]]
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
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
    services.add_gNMIServicer_to_server(Target(), server)
    pair = [((tmp_path / "key.pem").read_bytes(), (tmp_path / "cert.pem").read_bytes())]
    server.add_secure_port(f"127.0.0.1:{port}", grpc.ssl_server_credentials(pair))
    server.start()
    yield port, tree, tmp_path / "cert.pem"
    server.stop(0)


def ends(tree: dict[str, Any]) -> set[tuple[str, str]]:
    return {(config["input-port-name"], config["output-port-name"]) for config in tree.values()}


def test_gnmi_follows_a_schedule_once_its_certificate_is_trusted(
    target: tuple[int, dict[str, Any], Path], tmp_path: Path, capsys: Capture
) -> None:
    port, tree, certificate = target
    path = written(tmp_path, "ocp_gnmi", f"127.0.0.1:{port}")
    order = ["push", str(path), "--timeout", "5s"]
    assert main([*order, "--phase", "dp", "--apply"]) == 1
    assert "error[OPUS741]" in capsys.readouterr().err
    assert tree == {}
    assert main([*order, "--schedule", "--times", "2", "--apply", "--ca", str(certificate)]) == 0
    assert ends(tree) == wanted(path, "pp", sided=True)
    assert main([*order, "--phase", "dp", "--apply", "--insecure"]) == 0
    assert ends(tree) == wanted(path, "dp", sided=True)
    (name, config), *_ = tree.items()
    tree["by hand"] = {**tree.pop(name), "name": "by hand"}
    assert main([*order, "--phase", "pp", "--apply", "--ca", str(certificate)]) == 0, "it goes by the name that it has"
    assert ends(tree) == wanted(path, "pp", sided=True)
    assert config["name"] not in tree
