"""Every document validates against a YANG model: yanglint, and yangson for JSON, accept what is written, and refuse a
seeded fault."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opusc.plan.plan import Plan
from tests.real.conftest import module, program

YANG = Path(__file__).parent / "yang"
Files = Callable[[str], tuple[Plan, Path]]


def polatis_json(text: str) -> str:
    return text  # RESTCONF bodies are documents as they stand


def polatis_xml(text: str) -> str:
    return text[text.index("<cross-connects") : text.index("</cross-connects>")].replace(
        ' nc:operation="replace"', ""
    ) + "</cross-connects>"  # fmt: skip


def sonic(text: str) -> str:
    rows = json.loads(text)["OCS_CROSS_CONNECT"]
    table = [{"cross_connect_id": key, **row} for key, row in rows.items()]
    return json.dumps({"sonic-ocs:sonic-ocs": {"OCS_CROSS_CONNECT": {"OCS_CROSS_CONNECT_LIST": table}}})


def ocp(text: str) -> str:
    return json.dumps({"ocp-connections:connections": json.loads(text)["replace"][0]["val"]})


CASES = [
    ("polatis", "restconf", "optical-switch@2018-03-22.yang", "json", polatis_json, ('"ingress": 1,', '"ingress": 0,')),
    ("polatis", "netconf", "optical-switch@2018-03-22.yang", "xml", polatis_xml, ("<egress>", "<egres>")),
    ("sonic", "config-db", "sonic-ocs.yang", "json", sonic, ('"a_side": "1A"', '"a_side": "1B"')),
    ("ocp-gnmi", "set-request", "ocp-connections.yang", "json", ocp, ('"output-port-name": "', '"output-port": "')),
]


def yanglint(model: str, document: str, suffix: str, place: Path) -> int:
    path = place / f"document.{suffix}"
    path.write_text(document)
    command = [program("yanglint"), "-t", "config", str(YANG / model), str(path)]
    return subprocess.run(command, capture_output=True, check=False).returncode


@pytest.mark.parametrize(("target", "wire", "model", "suffix", "document", "fault"), CASES)
def test_whole_sets_validate(
    target: str,
    wire: str,
    model: str,
    suffix: str,
    document: Callable[[str], str],
    fault: tuple[str, str],
    files: Files,
    tmp_path: Path,
) -> None:
    _, folder = files(target)
    wholes = [p for p in sorted((folder / wire).iterdir()) if not p.name.startswith("change-")]
    assert len(wholes) > 5
    for path in wholes:
        assert yanglint(model, document(path.read_text()), suffix, tmp_path) == 0, path.name
    wrong = wholes[0].read_text().replace(*fault)
    assert wrong != wholes[0].read_text()
    broken = document(wrong) if suffix == "json" else document(wrong).replace("</egress>", "</egres>")
    assert yanglint(model, broken, suffix, tmp_path) != 0


def data_model(file: str) -> Any:
    """The model of one module, for yangson."""
    text = (YANG / file).read_text()
    name, revision, namespace = (
        re.search(pattern, text)[1]  # type: ignore[index]
        for pattern in (r"module (\S+)", r"revision (\S+)", r'namespace "([^"]+)"')
    )
    known = {"name": name, "revision": revision, "namespace": namespace, "conformance-type": "implement"}
    library = {"ietf-yang-library:modules-state": {"module-set-id": "test", "module": [known]}}
    return module("yangson").DataModel(json.dumps(library), (str(YANG),))


@pytest.mark.parametrize(
    ("target", "wire", "model", "suffix", "document", "fault"), [case for case in CASES if case[3] == "json"]
)
def test_a_second_validator_agrees(
    target: str,
    wire: str,
    model: str,
    suffix: str,
    document: Callable[[str], str],
    fault: tuple[str, str],
    files: Files,
) -> None:
    _, folder = files(target)
    known = data_model(model)

    def valid(text: str) -> bool:
        try:
            known.from_raw(json.loads(document(text))).validate()
        except module("yangson.exceptions").YangsonException:
            return False
        return True

    wholes = [p for p in sorted((folder / wire).iterdir()) if not p.name.startswith("change-")]
    assert len(wholes) > 5
    for path in wholes:
        assert valid(path.read_text()), path.name
    assert not valid(wholes[0].read_text().replace(*fault))
