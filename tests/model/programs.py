"""Small programs for tests of the model stage, and what the stage makes of them."""

from collections.abc import Mapping

from opusc.diagnostics import Diagnostics
from opusc.model.build import build_model
from opusc.model.entities import Model
from opusc.model.loader import MemoryLoader
from opusc.source import Source
from opusc.syntax.parser import parse

HEAD = "opus 1\n\nuse std.switches\n\n"
CLUSTER = "cluster c { node_count = 4, gpus_per_node = 2, nic = { ports = 2, rate = 200 Gbps, optics = duplex } }\n"
FABRIC = "fabric rails { cluster = c, rail_by = local_rank, switch = switches.polatis_6000_32x32 }\n"
JOB = "job j {\n  fabric      = rails\n  parallelism = { tp = 2, dp = 2, pp = 2 }\n}\n"
PROGRAM = HEAD + CLUSTER + FABRIC + JOB


def model_of(
    text: str, parameters: Mapping[str, str] | None = None, files: Mapping[str, str] | None = None
) -> tuple[Model | None, Diagnostics]:
    """The model of a program (None when it is refused) and what was said about it."""
    sink = Diagnostics()
    program = parse(Source("test.opus", text), sink)
    assert not sink.has_errors, [d.message for d in sink]
    return build_model(program, MemoryLoader(dict(files or {})), parameters or {}, sink), sink


def right(text: str, parameters: Mapping[str, str] | None = None, files: Mapping[str, str] | None = None) -> Model:
    """The model of a program about which there is nothing to say."""
    model, sink = model_of(text, parameters, files)
    assert model is not None, [d.message for d in sink]
    assert not list(sink), [d.message for d in sink]
    return model


def codes(text: str, parameters: Mapping[str, str] | None = None, files: Mapping[str, str] | None = None) -> list[str]:
    """The codes of all messages, in order of place."""
    return [d.code for d in model_of(text, parameters, files)[1]]


def requiring(condition: str, before: str = "") -> str:
    """The program with a condition to evaluate, and declarations before it."""
    return HEAD + before + CLUSTER + FABRIC + JOB + f"require {condition}\n"
