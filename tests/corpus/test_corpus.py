"""Real jobs: every published configuration compiles to a proved plan, on a fabric sized for it.

The rows are degrees of parallelism that were really run (or, for a few, simulated). A small sample stands
here; the whole corpus beside the repository where it is developed.
"""

import csv
from math import ceil
from pathlib import Path

import pytest

import opusc

SAMPLE = """\
model,gpus,per_node,dialect,order,tp,cp,pp,vpp,dp,ep,expert_tp,note
DeepSeekV3,256,4,megatron,"tp,cp,ep,dp,pp",1,1,2,8,128,32,1,
LLAMA3.1_405B,256,4,megatron,"tp,cp,ep,dp,pp",2,2,8,4,8,1,,
GPT 310B,1920,8,megatron,"tp,cp,ep,dp,pp",8,1,16,1,15,1,,DP 15
GPT 530B,2520,8,megatron,"tp,cp,ep,dp,pp",8,1,35,1,9,1,,both odd
Llama-3.1-405B,8192,8,megatron,"tp,cp,pp,dp",8,1,16,1,64,1,,
deepseek_v3_16b,16,4,torchtitan,,4,1,2,1,2,8,,dp_replicate=1 dp_shard=2
llama-3.1-8b,8,4,torchtitan,,8,1,1,1,1,1,,dp_replicate=1 dp_shard=1
"""


def program(row: dict[str, str]) -> str:
    """The row as a program, with a fabric large enough: a domain holds at least the tensor group."""
    n = {key: int(row[key]) for key in ("gpus", "per_node", "tp", "cp", "pp", "dp", "ep")}
    per_node = min(n["per_node"], n["gpus"])
    domain_nodes = ceil(max(n["tp"], per_node) / per_node)
    nodes = ceil(n["gpus"] / per_node / domain_nodes) * domain_nodes
    dp = f"dp = {n['dp']}"
    parts = dict(word.split("=") for word in row["note"].split() if word.startswith("dp_"))
    if row["dialect"] == "torchtitan" and parts:
        dp = f"dp = {{ replicate = {parts['dp_replicate']}, shard = {parts['dp_shard']} }}"
    expert = f", expert_tp = {row['expert_tp']}" if row["expert_tp"] and n["ep"] > 1 else ""
    order = f"\n  order       = [{row['order'].replace(',', ', ')}]" if row["order"] else ""
    chunks = int(row["vpp"] or 1)
    pipeline = f"\n  pipeline    = interleaved {{ chunks = {chunks} }}" if chunks > 1 else ""
    return f"""\
opus 1

use std.switches

cluster c {{
  domain_count = {nodes // domain_nodes}
  domain       = {{ node_count = {domain_nodes}, gpus_per_node = {per_node} }}
  nic          = {{ ports = 2, rate = 200 Gbps, optics = duplex }}
}}

fabric rails {{
  cluster = c
  rail_by = domain_rank
  switch  = switches.generic {{ matrix = crossbar, radix = {2 * nodes} }}
}}

job row {{
  fabric      = rails
  dialect     = {row["dialect"]}
  parallelism = {{ tp = {n["tp"]}, cp = {n["cp"]}, {dp}, pp = {n["pp"]}, ep = {n["ep"]}{expert} }}{order}{pipeline}
}}
"""


def compiled(row: dict[str, str]) -> list[str]:
    """What opusc says about a row: codes of errors."""
    return [d.code for d in opusc.check(program(row)).errors]


@pytest.mark.parametrize("row", list(csv.DictReader(SAMPLE.splitlines())), ids=lambda r: f"{r['model']}-{r['gpus']}")
def test_sample(row: dict[str, str]) -> None:
    assert compiled(row) == []


def test_the_whole_corpus(shared: Path) -> None:
    with open(shared / "reference" / "parallelism-corpus.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 144
    wrong = {f"{row['model']} on {row['gpus']}": codes for row in rows if (codes := compiled(row))}
    assert not wrong


def test_a_published_preset_that_cannot_run_is_refused() -> None:
    """Kimi-K2 preset: TP 1, PP 4, EP 64 on 16 nodes of 8. A stage has 32 ranks, and 64 does not divide them."""
    row = dict.fromkeys(("order", "note", "vpp"), "") | {
        "model": "Kimi-K2", "gpus": "128", "per_node": "8", "dialect": "megatron", "tp": "1", "cp": "1", "pp": "4",
        "dp": "32", "ep": "64", "expert_tp": "1",
    }  # fmt: skip
    assert compiled(row) == ["OPUS414"]
