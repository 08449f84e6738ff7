"""Switches, GPUs, NICs, clusters and neural networks: blocks to entities."""

from opusc.diagnostics import Label
from opusc.model.components import Components, Fibre, Transceiver
from opusc.model.entities import (
    Cluster,
    Gpu,
    Matrix,
    NeuralNetwork,
    Nic,
    Optics,
    Peers,
    SwitchKind,
)
from opusc.model.reader import Reader
from opusc.model.values import Bound, Scope
from opusc.source import Span

__all__ = ["cluster", "components", "fibre", "network", "switch"]

MOST_GPUS = 4 * 1024 * 1024

#: No NIC has a port this fast: NVIDIA's ConnectX-8 data sheet ends at 800 Gbps. Most often it is GB/s for Gbps.
UNLIKELY_PORT = 1_600_000_000_000


def switch(reader: Reader) -> SwitchKind | None:
    matrix, radix = reader.choice("matrix"), reader.count("radix")
    times = reader.sub("reconfigure", "reconfiguration")
    parts = {name: times.measure(name) if times else None for name in ("settle", "relock", "control")}
    driver = reader.choice("driver")
    values = {name: reader.measure(name) for name in ("insertion_loss", "power", "price")}
    address, blocked = reader.text("address"), reader.indices("blocked") or ()
    if matrix is None or radix is None:
        return None
    bad = next((position for position in blocked if not 1 <= position <= radix), None)
    if bad is not None:
        reader.ev.sink.error(
            "OPUS204",
            f"position {bad} cannot be blocked: `{reader.what}` has positions 1..{radix}",
            reader.spans()["blocked"],
        )
    if address is not None and "@" in address:
        reader.ev.sink.error(
            "OPUS304",
            "a management address must not hold credentials",
            reader.spans()["address"],
            "`@` in an address",
            help="state the host only; whoever connects brings the credentials",
        )
        address = None
    return SwitchKind(
        name=reader.text("name") or reader.block.name or "switch",
        matrix=Matrix(matrix.word),
        radix=radix,
        driver=driver.word if driver else None,
        address=address,
        blocked=tuple(sorted(set(blocked))),
        ingress_names=_port_names(reader, "ingress_name", radix),
        egress_names=_port_names(reader, "egress_name", radix),
        span=reader.block.span,
        spans=reader.spans(),
        **parts,
        **values,
    )


def _port_names(reader: Reader, field: str, radix: int) -> tuple[str, ...]:
    """The name of each port, from a text with `position` in scope; () where it is not stated or wrong."""
    entry = reader.entry(field)
    if entry is None:
        return ()
    names: list[str] = []
    for position in range(1, radix + 1):
        scope = Scope(entry.value.scope, {"position": position})
        found = reader.of(Bound(entry.value.expression, scope, entry.value.base))
        if found is None:
            return ()
        value, span = found
        if not isinstance(value, str):
            reader.wrong(field, value, span, "a text")
            return ()
        names.append(value)
    if len(set(names)) < radix:
        reader.ev.sink.error(
            "OPUS212",
            f"`{field}` gives several ports one name",
            entry.value.span,
            f"position 1 and another are `{names[0]}`" if names.count(names[0]) > 1 else "names must differ",
            help='put the position into it: "1.1.{position}"',
        )
        return ()
    return tuple(names)


def components(reader: Reader) -> Components:
    prices = ("transceiver_power", "transceiver_price", "packet_switch_power", "packet_switch_price")
    names = (*prices, "packet_switch_latency")
    figures = {name: reader.measure(name) for name in names}
    ends = reader.choice("transceivers")
    return Components(
        name=reader.block.name or "components",
        packet_switch_ports=reader.count("packet_switch_ports"),
        both_ends=ends.word == "both_ends" if ends else None,
        span=reader.block.span,
        spans=reader.spans(),
        **figures,
    )


def transceiver(reader: Reader) -> Transceiver:
    return Transceiver(
        name=reader.block.name or "transceiver",
        transmit_power=reader.measure("transmit_power"),
        sensitivity=reader.measure("sensitivity"),
        circulator_loss=reader.measure("circulator_loss"),
        span=reader.block.span,
        spans=reader.spans(),
    )


def fibre(reader: Reader) -> Fibre:
    connectors = reader.count("connectors")
    return Fibre(
        name=reader.block.name or "fibre",
        length=reader.measure("length"),
        loss=reader.measure("loss"),
        connectors=2 if connectors is None else connectors,
        connector_loss=reader.measure("connector_loss"),
        patch_panels=reader.count("patch_panels"),
        patch_panel_loss=reader.measure("patch_panel_loss"),
        delay=reader.measure("delay"),
        span=reader.block.span,
        spans=reader.spans(),
    )


def gpu(reader: Reader) -> Gpu:
    return Gpu(
        name=reader.block.name,
        peak=reader.measure("peak"),
        memory=reader.measure("memory"),
        memory_bandwidth=reader.measure("memory_bandwidth"),
        span=reader.block.span,
        spans=reader.spans(),
    )


def network(reader: Reader) -> NeuralNetwork | None:
    names = ("layers", "width", "feed_forward", "heads", "kv_heads", "vocabulary", "sequence", "experts")
    counts = {name: reader.count(name) for name in (*names, "experts_per_token")}
    layers = counts.pop("layers")
    if layers is None:
        return None
    return NeuralNetwork(
        name=reader.block.name,
        layers=layers,
        tied_embeddings=bool(reader.truth("tied_embeddings")),
        gated=reader.truth("gated"),
        span=reader.block.span,
        spans=reader.spans(),
        **counts,
    )


def nic(reader: Reader, role: str, span: Span) -> Nic | None:
    ports, rate, optics = reader.count("ports"), reader.measure("rate"), reader.choice("optics")
    peers, per, rail = reader.choice("peers"), reader.choice("per"), reader.choice("rail")
    transceivers = reader.count("transceivers")
    optical = reader.sub("transceiver", "transceiver")
    if rail is None and reader.absent("optics"):
        reader.ev.sink.error(
            "OPUS209", "a NIC on the rails states its `optics`", reader.block.span, "`optics` is missing",
            help="duplex: a transmit and a receive fibre; bidi: one fibre both ways",
        )  # fmt: skip
    if ports is None or rate is None or (optics is None and rail is None):
        return None
    if rate >= UNLIKELY_PORT:
        gbps = rate // 10**9
        reader.ev.sink.warning(
            "OPUS211",
            f"{gbps:,} Gbps a port is beyond known optics",
            reader.spans()["rate"],
            f"{gbps:,} Gbps per direction",
            help=f"did you mean `{gbps // 8} Gbps` ({gbps // 64:,} GB/s)? 1 byte is 8 bits",
        )
    if peers is not None and peers.word == "independent" and optics is not None and optics.word == "bidi":
        reader.ev.sink.error(
            "OPUS305",
            "bidi optics send and receive on one fibre, so their peers cannot be independent",
            reader.spans()["peers"],
            secondary=[Label(reader.spans()["optics"], "one fibre both ways")],
        )
    return Nic(
        role=role,
        ports=ports,
        rate=rate,
        optics=Optics(optics.word) if optics else Optics.DUPLEX,
        peers=Peers(peers.word) if peers else Peers.PAIRED,
        transceivers=transceivers,
        per_node=per is not None and per.word == "node",
        on_rail=rail is None,
        transceiver=transceiver(optical) if optical else None,
        span=span,
        spans=reader.spans(),
    )


def cluster(reader: Reader) -> Cluster | None:
    sizes = _sizes(reader)
    nics = _nics(reader)
    gpu_reader = reader.sub("gpu", "gpu")
    scale_up = reader.measure("scale_up")
    if reader.has("spares"):
        reader.ev.sink.error(
            "OPUS110",
            "spare nodes are planned for a later version of opusc",
            next(e.span for e in reader.block.entries if e.name == "spares"),
            "not in this version",
            help="leave the spares out, and compile the job on the nodes it runs on",
        )
    if sizes is None or nics is None:
        return None
    node_count, gpus_per_node, gpus_per_domain, use = sizes
    if node_count * gpus_per_node > MOST_GPUS:
        spans = reader.spans()
        reader.ev.sink.error(
            "OPUS120",
            f"cluster `{reader.what}` has {node_count * gpus_per_node:,} GPUs; the limit is {MOST_GPUS:,}",
            spans.get("domain_count") or spans.get("node_count") or reader.block.span,
            f"{node_count:,} nodes of {gpus_per_node:,}",
        )
        return None
    return Cluster(
        name=reader.block.name,
        node_count=node_count,
        gpus_per_node=gpus_per_node,
        gpus_per_domain=gpus_per_domain,
        use=use,
        nics=nics,
        gpu=gpu(gpu_reader) if gpu_reader else None,
        scale_up=scale_up,
        span=reader.block.span,
        spans=reader.spans(),
    )


def _nics(reader: Reader) -> tuple[Nic, ...] | None:
    found = []
    for entry in reader.all("nic"):
        inner = reader.as_block("nic", entry.value, "nic")
        made = nic(inner, entry.label, entry.span) if inner else None
        if made is None:
            return None
        found.append(made)
    on_rail = [n for n in found if n.on_rail]
    if len(on_rail) != 1 and found:
        reader.ev.sink.error(
            "OPUS305",
            f"cluster `{reader.what}` has {len(on_rail) or 'no'} NICs on its rails; it takes one role",
            (on_rail[1] if on_rail else found[0]).span,
            "state `rail = none` for the others" if on_rail else "all have `rail = none`",
        )
        return None
    if on_rail and on_rail[0].per_node:
        reader.ev.sink.error(
            "OPUS305", "a NIC on the rails belongs to a GPU, not to a node", on_rail[0].span, "`per = node`"
        )
        return None
    return tuple(found) or None


def _sizes(reader: Reader) -> tuple[int, int, int, int] | None:
    """Nodes, GPUs a node, GPUs a domain, GPUs of a domain in use."""
    sink, span = reader.ev.sink, reader.block.span
    domain = reader.sub("domain", "domain")
    nodes, domains = reader.count("node_count"), reader.count("domain_count")
    per_node = reader.count("gpus_per_node")
    inner = domain.count("gpus_per_node") if domain else None
    if per_node is not None and inner is not None and per_node != inner:
        assert domain is not None
        sink.error(
            "OPUS306",
            f"{per_node} and {inner} GPUs in a node",
            domain.spans()["gpus_per_node"],
            "in the domain",
            secondary=[Label(reader.spans()["gpus_per_node"], "in the cluster")],
        )
        return None
    per_node = per_node or inner
    if per_node is None:
        if reader.absent("gpus_per_node") and (domain is None or domain.absent("gpus_per_node")):
            sink.error("OPUS209", f"cluster `{reader.what}` does not state `gpus_per_node`", span, "GPUs in a node?")
        return None
    nodes_per_domain = (domain.count("node_count") if domain else None) or 1
    per_domain = (domain.count("gpus") if domain else None) or nodes_per_domain * per_node
    if domain and domain.has("gpus") and (per_node % per_domain or domain.has("node_count")):
        sink.error(
            "OPUS306",
            f"a domain of {per_domain} GPUs is no part of a node of {per_node}",
            domain.spans()["gpus"],
            "must divide the node",
            help="for domains of whole nodes state `node_count`",
        )
        return None
    if nodes is None:
        if domains is None:
            if reader.absent("node_count") and reader.absent("domain_count"):
                sink.error("OPUS209", f"cluster `{reader.what}` does not state `node_count`", span, "how many nodes?")
            return None
        nodes = -(-domains * per_domain // per_node)
    gpus = nodes * per_node
    if gpus % per_domain or (domains is not None and domains * per_domain != gpus):
        at = "domain_count" if domains is not None else "node_count"
        sink.error(
            "OPUS306",
            f"{nodes:,} nodes of {per_node} GPUs do not make "
            + (f"{domains:,} domains" if domains is not None else "whole domains")
            + f" of {per_domain}",
            reader.spans()[at],
            f"{gpus:,} GPUs in all",
        )
        return None
    use = (domain.count("use") if domain else None) or per_domain
    if use > per_domain:
        assert domain is not None
        sink.error("OPUS204", f"`use` is {use}; a domain has {per_domain} GPUs", domain.spans()["use"], "out of range")
        return None
    return nodes, per_node, per_domain, use
