"""Every kind of block and every field: one table for the evaluator, the messages, the docs and `opusc show`.

Bandwidth fields are per direction unless their text says otherwise. A field without a default is either
required, or demanded by whoever first needs it.
"""

from opusc.model.fields import Choice, Count, FieldSpec, FieldType, Kind, Measure, Other, Record
from opusc.model.words import APPLIED, ARGUMENTS

__all__ = [
    "APPLIED",
    "ARGUMENTS",
    "KINDS",
    "TOPOLOGIES",
    "Choice",
    "Count",
    "FieldSpec",
    "FieldType",
    "Kind",
    "Measure",
    "Other",
    "Record",
]

TOPOLOGIES = ("ring", "chain", "pairs", "edges", "rotor", "mesh", "hypercube", "flattened_butterfly")

_TIME = Measure("time", "ms")
_RATE = Measure("bandwidth", "Gbps")
_TEXT = Other("text")
_TRUTH = Other("true | false")
_SELECTION = Other("list or range of indices")
_LATER_JOBS = (
    "spare nodes, faults and several jobs on one fabric are planned; this version compiles one job on a whole fabric"
)
_LATER_PODS = "pods and slices are planned; this version compiles rail fabrics"

F = FieldSpec

_SWITCH = Kind(
    "switch",
    "An optical circuit switch.",
    (
        F(
            "matrix",
            Choice(("crossbar", "any")),
            "crossbar joins side A (ingress) to side B (egress); any joins any two ports",
            True,
        ),
        F("radix", Count(most=1 << 20), "positions: of each side on a crossbar, in all on an `any` matrix", True),
        F("reconfigure", Record("reconfiguration"), "how long a change takes; needed by estimates, not by circuits"),
        F("insertion_loss", Measure("loss", "dB"), "loss of one light path through the switch"),
        F("power", Measure("power", "W"), "electrical power of the whole switch"),
        F("price", Measure("money", "USD"), "price of the whole switch"),
        F("driver", Choice(("polatis", "sonic", "calient", "ocp_gnmi")), "the protocol its controller speaks"),
        F("address", _TEXT, "management address, without credentials; `rail`, `plane` and `block` may stand in it"),
        F("ingress_name", _TEXT, "how the switch calls ingress (side A) ports; `position` may stand in it"),
        F("egress_name", _TEXT, "how the switch calls egress (side B) ports; `position` may stand in it"),
        F("blocked", _SELECTION, "positions that must not be used; their ports move to the next free ones"),
        F("name", _TEXT, "how messages and files call the switch", default="the name it was taken from"),
    ),
)
_RECONFIGURATION = Kind(
    "reconfiguration",
    "The parts of the time that a change of circuits takes.",
    (
        F("settle", _TIME, "mirrors or beams move", default="demanded where it is needed"),
        F("relock", _TIME, "transceivers find the light again", default="demanded where it is needed"),
        F("control", _TIME, "controller and protocol", default="0 ms"),
    ),
    declared=False,
)
_GPU = Kind(
    "gpu",
    "An accelerator.",
    (
        F("peak", Measure("compute rate", "TFLOPS"), "dense 16-bit operations per second"),
        F("memory", Measure("size", "GB", 8), "memory of one GPU"),
        F("memory_bandwidth", Measure("bandwidth", "GB/s"), "reading or writing its memory"),
    ),
)
_NIC = Kind(
    "nic",
    "The NICs of one role, as each GPU (or node) has them.",
    (
        F("ports", Count(1, 64), "optical ports of one GPU (of one node with `per = node`)", True),
        F("rate", _RATE, "bandwidth of one port, per direction", True),
        F(
            "optics",
            Choice(("duplex", "bidi")),
            "duplex: a transmit and a receive fibre; bidi: one fibre both ways; stated for NICs on the rails",
        ),
        F(
            "peers",
            Choice(("paired", "independent")),
            "whether transmitter and receiver go to one neighbour",
            default="paired",
        ),
        F("transceivers", Count(), "transceivers that the ports are spread over", default="one a port"),
        F("transceiver", Record("transceiver"), "optical power and sensitivity; link budgets need it"),
        F("per", Choice(("gpu", "node")), "whose ports these are", default="gpu"),
        F("rail", Choice(("none",)), "none: never on a rail (storage, management)", default="on the rails"),
    ),
)
_TRANSCEIVER = Kind(
    "transceiver",
    "The optics of a NIC port, as a link budget sees them.",
    (
        F("transmit_power", Measure("level", "dBm", signed=True), "least average launch power of one lane"),
        F("sensitivity", Measure("level", "dBm", signed=True), "least average power of one lane that is received"),
        F("circulator_loss", Measure("loss", "dB"), "loss of one pass of a circulator, at each end of `bidi` optics"),
    ),
)
_FIBRE = Kind(
    "fibre",
    "The cable between a NIC port and its switch, with its connectors and patch panels.",
    (
        F("length", Measure("length", "m"), "length of one cable, NIC to switch, at most"),
        F("loss", Measure("loss per length", "dB/km"), "loss of the fibre"),
        F("connectors", Count(0, 64), "mated connector pairs of one cable, panels apart", default="2: both ends"),
        F("connector_loss", Measure("loss", "dB"), "loss of one mated pair"),
        F(
            "patch_panels",
            Count(0, 64),
            "patch panels on the way of one cable",
            default="the jacks of the cabling files; else 0",
        ),
        F("patch_panel_loss", Measure("loss", "dB"), "loss of one patch panel"),
        F("delay", Measure("delay per length", "ns/m"), "what light takes for a length; needed by latencies"),
    ),
)
_DOMAIN = Kind(
    "domain",
    "A scale-up domain: GPUs joined by NVLink, ICI or alike.",
    (
        F("node_count", Count(), "nodes in a domain", default="1"),
        F("gpus_per_node", Count(), "GPUs of a node", default="the cluster's"),
        F("gpus", Count(), "GPUs in a domain that is a part of a node", default="all of its nodes"),
        F("use", Count(), "GPUs of a domain that a job occupies", default="all"),
    ),
    declared=False,
)
_CLUSTER = Kind(
    "cluster",
    "Nodes, GPUs and NICs.",
    (
        F("node_count", Count(), "nodes in the cluster", default="domain_count times the nodes of a domain"),
        F("domain_count", Count(), "scale-up domains in the cluster"),
        F("domain", Record("domain"), "the scale-up domain", default="one node"),
        F("gpus_per_node", Count(), "GPUs in a node", default="the domain's"),
        F("gpu", Record("gpu"), "the accelerator; needed by estimates, not by circuits"),
        F("scale_up", Measure("bandwidth", "GB/s"), "scale-up bandwidth of one GPU, per direction"),
        F("nic", Record("nic"), "NICs, with a label where there are several roles", True, labelled=True),
        F("spares", Other("record"), "spare nodes"),
    ),
)
_RAIL = Kind(
    "rail",
    "What differs on some rails.",
    (
        F("switch", Record("switch"), "the switch of these rails", default="the fabric's"),
        F("fibre", Record("fibre"), "the cables of these rails", default="the fabric's"),
    ),
    declared=False,
)
_COMPONENTS = Kind(
    "components",
    "Power and price of what a packet-switched fabric is made of; `opusc cost` compares with it.",
    (
        F("transceiver_power", Measure("power", "W"), "electrical power of one transceiver"),
        F("transceiver_price", Measure("money", "USD"), "price of one transceiver"),
        F("packet_switch_ports", Count(2), "ports of one packet switch, each as fast as a transceiver"),
        F("packet_switch_power", Measure("power", "W"), "electrical power of a packet switch without transceivers"),
        F("packet_switch_price", Measure("money", "USD"), "price of a packet switch without transceivers"),
        F("packet_switch_latency", Measure("time", "ns"), "what a packet takes through a packet switch; optional"),
        F(
            "transceivers",
            Choice(("one_end", "both_ends")),
            "one_end: only those of the GPUs are counted; both_ends: those in packet switches too",
        ),
    ),
)
_FABRIC = Kind(
    "fabric",
    "Rails of optical circuit switches over a cluster.",
    (
        F("cluster", Record("cluster"), "the cluster it joins", True),
        F(
            "rail_by",
            Choice(("local_rank", "domain_rank")),
            "the rule: a GPU's rail is its index in its node, or in its domain",
            True,
        ),
        F("switch", Record("switch"), "the switch of every rail; `rail`, `plane` and `block` may stand in it"),
        F("rail", Record("rail"), "what differs on some rails", selected=True),
        F("planes", Count(), "switches of a rail, each taking some NIC ports of every GPU", default="1"),
        F("blocks", Count(), "switches of a rail, each taking some of the nodes", default="1"),
        F(
            "cabling",
            Choice(("share", "explicit", "csv")),
            "where each NIC port ends: in order, `share { rail 0 = 1..8 }`, "
            '`explicit { of = [(node, gpu, port, position), ...] }`, `csv "file.csv"`',
            default="in order: node by node, GPU by GPU, port by port",
        ),
        F("fibre", Record("fibre"), "the cables of every rail; needed by link budgets and latencies, not by circuits"),
        F("components", Record("components"), "figures for `opusc cost`; needed by it, not by circuits"),
    ),
)
_NETWORK = Kind(
    "network",
    "A neural network that a job trains.",
    (
        F("layers", Count(), "transformer layers", True),
        F("width", Count(), "model width"),
        F("feed_forward", Count(), "width of the feed-forward part (of one expert in a mixture)"),
        F("heads", Count(), "attention heads"),
        F("kv_heads", Count(), "key and value heads", default="heads"),
        F("vocabulary", Count(), "tokens in the vocabulary"),
        F("sequence", Count(), "tokens in a sequence"),
        F("experts", Count(), "routed experts of a mixture layer"),
        F("experts_per_token", Count(), "routed experts that a token visits"),
        F("gated", _TRUTH, "whether the feed-forward part has three matrices (gate, up, down), not two"),
        F("tied_embeddings", _TRUTH, "whether input and output embedding share weights", default="false"),
    ),
)
_DP = Kind(
    "dp",
    "A data-parallel degree in two parts.",
    (
        F("replicate", Count(), "copies of the sharded model", True),
        F("shard", Count(), "ranks that share one copy", True),
    ),
    declared=False,
)
_PARALLELISM = Kind(
    "parallelism",
    "Degrees of parallelism.",
    (
        F("tp", Count(), "tensor", default="1"),
        F("cp", Count(), "context", default="1"),
        F("dp", Other("count | { replicate, shard }"), "data", default="1"),
        F("pp", Count(1, 4096), "pipeline", default="1"),
        F("ep", Count(), "expert; what it divides depends on the dialect", default="1"),
        F("expert_tp", Count(), "tensor degree inside experts (megatron, when ep > 1)"),
    ),
    declared=False,
    nested=(("replicate", "dp"), ("shard", "dp")),
)
_PHASE = Kind(
    "phase",
    "A kind of traffic.",
    (
        F("topology", Other("topology"), "the graph among the scale-up domains of each group"),
        F("hold", _TIME, "shortest time to keep the circuits"),
        F(
            "traffic",
            Choice(("reduction", "point_to_point", "all_to_all")),
            "who must reach whom",
            default="by the phase's name and axes",
        ),
    ),
    declared=False,
)
_JOB = Kind(
    "job",
    "A training job on a fabric.",
    (
        F("fabric", Record("fabric"), "the fabric it runs on", True),
        F("dialect", Choice(("megatron", "torchtitan")), "whose meaning of ep and of split dp; required for either"),
        F("parallelism", Record("parallelism"), "degrees", True),
        F("order", Other("list of axes"), "rank order, innermost first", default="the dialect's"),
        F("nodes", _SELECTION, "the nodes it may use, in placement order", default="all"),
        F("model", Record("network"), "what it trains; needed by estimates"),
        F("batch", Count(), "sequences in a global batch"),
        F("microbatches", Count(), "micro-batches of one pipeline in an iteration"),
        F("efficiency", Other("ratio (%)"), "share of the roofline that compute reaches", default="the roofline"),
        F(
            "pipeline",
            Choice(("gpipe", "one_f_one_b", "interleaved", "dualpipe")),
            "the schedule; interleaved { chunks = v } joins the stages in a ring",
            default="one_f_one_b",
        ),
        F("stages", Other("list of counts"), "layers of each pipeline stage", default="layers / pp"),
        F(
            "sharding",
            Choice(("none", "optimizer", "gradients", "full")),
            "what data parallelism shards",
            default="none",
        ),
        F("policy", Choice(("on_demand", "provisioned", "static", "auto")), "when a change may start"),
        F("relay", Choice(("allow", "forbid")), "whether traffic may hop to another GPU's rail", default="allow"),
        F(
            "schedule",
            Other("list of phases"),
            "the order of a stage's traffic, or measured: `trace \"file\" { compute = [time, ...] }`",
            default="by the pipeline",
        ),
        F("pack", Other("list of phases"), "phases that have ports to themselves: [dp, pp { ports = 1 }]"),
    ),
)
_RING = Kind(
    "ring",
    "Arguments of the topology.",
    (F("one_way", _TRUTH, "every port sends to the next domain and hears the previous one", default="false"),),
    declared=False,
)
_BUTTERFLY = Kind(
    "flattened_butterfly",
    "Arguments of the topology.",
    (F("dims", Other("list of counts"), "sizes of the dimensions; they multiply to the domains of a group", True),),
    declared=False,
)
_TOPOLOGY = Kind(
    "topology",
    "A topology written in the language; its parameters are set by `name { parameter = value }`.",
    (F("edges", Other("list of pairs"), "edges among `members` (0..size - 1)", True),),
)

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        _CLUSTER,
        _DOMAIN,
        _NIC,
        _TRANSCEIVER,
        _FIBRE,
        _GPU,
        _FABRIC,
        _RAIL,
        _SWITCH,
        _COMPONENTS,
        _RECONFIGURATION,
        _JOB,
        _PARALLELISM,
        _DP,
        _PHASE,
        _NETWORK,
        _TOPOLOGY,
        _RING,
        _BUTTERFLY,
        Kind("pod", "Cubes of TPUs.", (), later=_LATER_PODS),
        Kind("slice", "A part of a pod.", (), later=_LATER_PODS),
        Kind("fault", "Something broken.", (), later=_LATER_JOBS),
    )
}
