"""The model: what the program describes, with every name resolved and every quantity an integer.

Units: bandwidth bit/s per direction, size bytes, time picoseconds, electrical power milliwatts, money
US cents, optical loss and level thousandths of a dB or dBm, compute operations per second. Positions count from 1, all
other indices from 0. None means that the program does not say; whoever needs the number demands it.

Every entity knows where it was written: `span` is the whole, `at("field")` the value of one field.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING

from opusc.diagnostics import Diagnostics
from opusc.model.edges import EdgeRule
from opusc.source import Source, Span
from opusc.structural import Structural

if TYPE_CHECKING:
    from opusc.model.components import Components, Fibre, Transceiver

__all__ = [
    "Cable",
    "CablingKind",
    "CablingSpec",
    "Cluster",
    "Decision",
    "Dialect",
    "Entity",
    "Fabric",
    "Gpu",
    "Job",
    "Matrix",
    "Model",
    "NeuralNetwork",
    "Nic",
    "Optics",
    "Packed",
    "Parallelism",
    "Peers",
    "PhaseSpec",
    "Pipeline",
    "PipelineKind",
    "RailBy",
    "RailSpec",
    "Requirement",
    "Side",
    "SwitchKind",
    "TopologySpec",
    "Traffic",
]


class Matrix(StrEnum):
    CROSSBAR = "crossbar"  # joins a side-A (ingress) port to a side-B (egress) port
    ANY = "any"  # joins any two ports


class Optics(StrEnum):
    DUPLEX = "duplex"  # a transmit and a receive fibre
    BIDI = "bidi"  # one fibre both ways, through a circulator


class Peers(StrEnum):
    PAIRED = "paired"  # transmitter and receiver of a port go to the same neighbour
    INDEPENDENT = "independent"  # they may go to different neighbours


class Side(StrEnum):
    A = "A"
    B = "B"


class RailBy(StrEnum):
    LOCAL_RANK = "local_rank"  # rail = index of the GPU in its node
    DOMAIN_RANK = "domain_rank"  # rail = index of the GPU in its scale-up domain


class Dialect(StrEnum):
    MEGATRON = "megatron"
    TORCHTITAN = "torchtitan"


class Traffic(StrEnum):
    """What a phase moves, hence who must reach whom."""

    REDUCTION = "reduction"  # gather, reduce, all-reduce along the topology: it must be connected
    POINT_TO_POINT = "point_to_point"  # neighbours only, both ways
    ALL_TO_ALL = "all_to_all"  # every pair: directly, or through relays that the plan names


class PipelineKind(StrEnum):
    GPIPE = "gpipe"
    ONE_F_ONE_B = "one_f_one_b"
    INTERLEAVED = "interleaved"
    DUALPIPE = "dualpipe"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Entity(Structural):
    """Anything the author wrote."""

    span: Span = field(compare=False, repr=False)
    spans: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)

    def at(self, name: str) -> Span:
        """Where the value of a field stands, or the whole entity when it is a default."""
        return self.spans.get(name, self.span)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SwitchKind(Entity):
    """One optical circuit switch, as a rail uses it (radix counts positions of one side on a crossbar)."""

    name: str  # as the author named it: `polatis_6000n_192`
    matrix: Matrix
    radix: int
    settle: int | None = None  # ps, mirrors or beams move
    relock: int | None = None  # ps, transceivers find the light again
    control: int | None = None  # ps, controller and protocol
    insertion_loss: int | None = None  # thousandths of a dB
    power: int | None = None  # mW
    price: int | None = None  # US cents
    driver: str | None = None  # which controller format: polatis, sonic, calient, ocp_gnmi
    address: str | None = None  # management address, without credentials
    blocked: tuple[int, ...] = ()  # positions that must not be used
    ingress_names: tuple[str, ...] = ()  # how the switch calls its ports, by position; () for its maker's own rule
    egress_names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Nic(Entity):
    """The NICs of one role. `ports` is per GPU (per node when `per_node`)."""

    role: str  # "" for the only one
    ports: int
    rate: int  # bit/s per port and direction
    optics: Optics
    peers: Peers = Peers.PAIRED
    transceivers: int | None = None
    per_node: bool = False
    on_rail: bool = True
    transceiver: "Transceiver | None" = None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Gpu(Entity):
    name: str
    peak: int | None = None  # operations per second
    memory: int | None = None  # bytes
    memory_bandwidth: int | None = None  # bit/s


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NeuralNetwork(Entity):
    """The model that a job trains (`model = models.llama3_8b`)."""

    name: str
    layers: int
    width: int | None = None
    feed_forward: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    vocabulary: int | None = None
    sequence: int | None = None
    experts: int | None = None
    experts_per_token: int | None = None
    tied_embeddings: bool = False
    gated: bool | None = None  # the feed-forward part has three matrices (gate, up, down) rather than two


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Cluster(Entity):
    """Nodes of GPUs, grouped into scale-up domains.

    GPUs are numbered node by node: GPU g is in node g // gpus_per_node at local rank g % gpus_per_node, and
    in domain g // gpus_per_domain at domain rank g % gpus_per_domain. A job occupies the first `use` GPUs
    of each domain.
    """

    name: str
    node_count: int
    gpus_per_node: int
    gpus_per_domain: int
    use: int  # GPUs of a domain that a job occupies, 1..gpus_per_domain
    nics: tuple[Nic, ...]
    gpu: Gpu | None = None
    scale_up: int | None = None  # bit/s per GPU and direction

    @property
    def gpu_count(self) -> int:
        return self.node_count * self.gpus_per_node

    @property
    def domain_count(self) -> int:
        return self.gpu_count // self.gpus_per_domain

    @property
    def rail_nic(self) -> Nic:
        """The NIC whose ports are on the rails (a rule guarantees that there is exactly one)."""
        return next(nic for nic in self.nics if nic.on_rail)


class CablingKind(StrEnum):
    IN_ORDER = "in_order"  # node by node, GPU by GPU, port by port, from position 1
    SHARE = "share"  # as in_order, but each rail in its own range of one chassis' positions
    LISTED = "listed"  # every cable stated, inline or in CSV files


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Cable(Entity):
    """One stated cable: the switch position on which a NIC port ends.

    The switch is that of the GPU's rail, the port's plane and the node's block. `receive` is set only on an
    `any` matrix with duplex optics, where receive has a position of its own.
    """

    node: int
    gpu: int  # local rank in the node
    port: int
    position: int
    side: Side | None = None  # bidi optics on a crossbar
    receive: int | None = None
    jacks: tuple[str, ...] = ()  # of patch panels on the way, from the NIC on
    length: int | None = None  # mm, of all its pieces; the rail's fibre says it for cables that do not


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CablingSpec(Entity):
    kind: CablingKind
    share: tuple[tuple[int, tuple[int, ...]], ...] = ()  # (rail, positions in order)
    cables: tuple[Cable, ...] = ()
    sides: tuple[Side, ...] = ()  # per port, for bidi optics on a crossbar: default A, B, A, B, ...


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RailSpec(Entity):
    """One rail: its switches in plane-major order, `switches[plane * blocks + block]`."""

    index: int
    switches: tuple[SwitchKind, ...]
    fibre: "Fibre | None" = None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Fabric(Entity):
    name: str
    cluster: Cluster
    rail_by: RailBy
    rails: tuple[RailSpec, ...]
    planes: int  # 1: every port of a GPU ends on the same switch; P: port p ends on plane p % P
    blocks: int  # switches of a rail and plane, each taking node_count / blocks consecutive nodes
    cabling: CablingSpec
    components: "Components | None" = None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Parallelism(Entity):
    """Degrees as stated. `dp` is the whole data-parallel degree; replicate * shard = dp where split."""

    tp: int = 1
    cp: int = 1
    dp: int = 1
    pp: int = 1
    ep: int = 1
    dp_replicate: int | None = None
    dp_shard: int | None = None
    expert_tp: int | None = None

    @property
    def split(self) -> bool:
        return self.dp_shard is not None

    @property
    def world(self) -> int:
        return self.tp * self.cp * self.dp * self.pp


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Pipeline(Entity):
    kind: PipelineKind
    chunks: int = 1  # virtual stages per pipeline rank


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TopologySpec(Entity):
    """A topology word with its arguments.

    `name` is one of ring, chain, pairs, edges, rotor, mesh, hypercube, flattened_butterfly, or the name of a topology
    written in the language. `edges` gives the edges for a group of n vertices, for `pairs` and `edges` with
    `of`, and for topologies written in the language; it is None for the named ones. A `one_way` ring sends to the next
    domain and hears the previous one on every port.
    """

    name: str
    dims: tuple[int, ...] | None = None
    one_way: bool = False
    edges: EdgeRule | None = field(default=None, compare=False)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PhaseSpec(Entity):
    """A kind of traffic and the axes it runs over.

    `axes` are names of the dense grid (tp, cp, dp, dp.replicate, dp.shard, pp) or of the expert grid
    (expert_tp, ep, edp, dp.replicate where split, pp), never a mix. `stated` is False for a default that the
    author did not write.
    """

    name: str
    axes: tuple[str, ...]
    topology: TopologySpec
    traffic: Traffic
    hold: int | None = None  # ps
    stated: bool = False


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Packed(Entity):
    """A phase that has NIC ports to itself: so many, or as many as it needs when `ports` is None."""

    phase: str
    ports: int | None = None


#: Given everything that a requirement waits for, in base units: "" when it holds, else the author's reason or "it does
#: not hold". Problems of the expression go to the sink; then the result is None.
Decision = Callable[[Mapping[str, Fraction], Diagnostics], str | None]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Requirement(Entity):
    """A `require` that holds, or that is decided when its results are there (`decide`).

    Those that fail never reach the model: they are errors. `checked` is False for those that a simulation decides.
    """

    text: str  # the condition as written
    checked: bool
    needs: tuple[str, ...] = ()  # what it waits for, e.g. ("overhead",)
    decide: "Decision | None" = field(default=None, compare=False, repr=False)  # set when it waits


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Job(Entity):
    """A training job on a fabric.

    `order` is innermost first over the axes of its dialect. `nodes` are the nodes it may use, in placement order (all
    when None). `phases` are the defaults and the stated ones, defaults first, in the order
    dp, dp.shard, dp.replicate, cp, pp, ep, edp, embedding, then stated ones as written.
    """

    name: str
    fabric: Fabric
    parallelism: Parallelism
    dialect: Dialect | None
    order: tuple[str, ...]
    phases: tuple[PhaseSpec, ...]
    pipeline: Pipeline
    nodes: tuple[int, ...] | None = None
    stages: tuple[int, ...] | None = None  # layers of each pipeline stage
    sharding: str = "none"
    network: NeuralNetwork | None = None
    batch: int | None = None
    microbatches: int | None = None
    efficiency: Fraction | None = None  # share of the roofline that its compute reaches
    policy: str | None = None
    relay_allowed: bool = True
    schedule: tuple[str, ...] = ()  # phase names in order, when stated
    trace: Entity | None = None  # a measured schedule: measured.Trace
    pack: tuple[Packed, ...] = ()  # phases that share out the ports instead of taking turns on them


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Model(Structural):
    """A whole program: exactly one job on one fabric, in this version."""

    job: Job
    requirements: tuple[Requirement, ...]
    parameters: Mapping[str, str]  # name -> value as canonical text, for the manifest
    sources: tuple[Source, ...] = field(compare=False, repr=False)

    @property
    def fabric(self) -> Fabric:
        return self.job.fabric

    @property
    def cluster(self) -> Cluster:
        return self.job.fabric.cluster
