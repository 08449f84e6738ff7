"""Chakra execution traces: what one rank of a simulated job computes and communicates, as framed protocol buffers.

A file is a sequence of messages, each preceded by its length as a varint: first a `GlobalMetadata`, then a `Node` for
each operation. Field numbers are those of the schema that ASTRA-sim's feeder reads (package `ChakraProtoMsg`, proto3,
version 0.0.4 of the metadata). Only what the simulators read is written; a field that is zero is left out, as proto3
does. Writing and reading need no library.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from opusc.backends.base import Unreadable

__all__ = [
    "COMM_TYPES",
    "VERSION",
    "Kind",
    "Node",
    "Value",
    "attribute",
    "encode",
    "frame",
    "head",
    "metadata",
    "read",
]

VERSION = "0.0.4"

#: `comm_type` of a collective, by its name in `opusc.schedule.timing.Algorithm`. Ring attention's exchange passes
#: every member's block round the ring once, which is an all-gather of blocks.
COMM_TYPES = {"all_reduce": 0, "all_gather": 2, "exchange": 2, "all_to_all": 6, "reduce_scatter": 7}

#: What an attribute holds: its name decides the type.
Value = int | bool | str

#: Field of AttributeProto that holds a value. The feeders take any integer type; these are the ones generators use.
_INT32, _INT64, _UINT64, _BOOL, _STRING = 7, 9, 13, 27, 29
_FIELDS = {
    "is_cpu_op": _BOOL,
    "num_ops": _INT64,
    "tensor_size": _UINT64,
    "comm_type": _INT64,
    "comm_size": _INT64,
    "pg_name": _STRING,
    "comm_src": _INT32,
    "comm_dst": _INT32,
    "comm_tag": _INT32,
}
_VARINTS = (_INT32, _INT64, _UINT64, _BOOL)


class Kind(IntEnum):
    """`type` of a node."""

    COMPUTE = 4
    SEND = 5
    RECEIVE = 6
    COLLECTIVE = 7


@dataclass(frozen=True, slots=True)
class Node:
    """One operation: it starts once the nodes in `after` have ended. Of several that are ready for the same unit of a
    rank the lowest number starts first."""

    number: int
    name: str
    kind: Kind
    after: tuple[int, ...]
    attributes: tuple[tuple[str, Value], ...]


# --- writing -------------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    """A number of at most 64 bits, seven a byte, the lowest first; negative ones as two's complement."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def frame(message: bytes) -> bytes:
    """A message with its length, as it stands in a file."""
    return varint(len(message)) + message


def metadata() -> bytes:
    """The first message of a file."""
    return frame(_bytes(1, VERSION.encode()))


def attribute(name: str, value: Value) -> bytes:
    """An attribute of a node, tag and length included. The value is there even when it is zero: a `oneof` is set."""
    field = _FIELDS[name]
    held = _bytes(field, str(value).encode()) if field == _STRING else _number(field, int(value))
    return _bytes(10, _bytes(1, name.encode()) + held)


def head(number: int, name: str, kind: Kind, after: tuple[int, ...]) -> bytes:
    """A node up to its attributes."""
    out = (_number(1, number) if number else b"") + _bytes(2, name.encode()) + _number(3, kind)
    if after:
        out += _bytes(5, b"".join(map(varint, after)))
    return out


def encode(node: Node) -> bytes:
    """A node as it stands in a file."""
    attributes = b"".join(attribute(name, value) for name, value in node.attributes)
    return frame(head(node.number, node.name, node.kind, node.after) + attributes)


# --- reading -------------------------------------------------------------------------------------


def read(data: bytes, where: str, known: dict[bytes, Node] | None = None) -> Iterator[Node]:
    """The nodes of a file. `known` keeps what was read before, since ranks share most messages. Raises Unreadable."""
    at, first = 0, True
    while at < len(data):
        length, at = _varint(data, at, where)
        message = data[at : at + length]
        if len(message) < length:
            raise Unreadable(f"{where}: message at byte {at} is cut off")
        at += length
        if first:
            if list(_fields(message, where)) != [(1, VERSION.encode())]:
                raise Unreadable(f"{where}: does not begin with the metadata of version {VERSION}")
            first = False
            continue
        node = known.get(message) if known is not None else None
        if node is None:
            node = _node(message, where)
            if known is not None:
                known[message] = node
        yield node
    if first:
        raise Unreadable(f"{where}: is empty")


def _varint(data: bytes, at: int, where: str) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise Unreadable(f"{where}: byte {at} is no end of a number")


def _fields(message: bytes, where: str) -> Iterator[tuple[int, int | bytes]]:
    """(field, value) of a message that has numbers and byte strings only."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at, where)
        value, at = _varint(message, at, where)
        if tag & 7 == 0:
            yield tag >> 3, value
        elif tag & 7 == 2 and at + value <= len(message):
            yield tag >> 3, message[at : at + value]
            at += value
        else:
            raise Unreadable(f"{where}: field {tag >> 3} cannot be read")


def _node(message: bytes, where: str) -> Node:
    number, name, kind = 0, "", 0
    after: list[int] = []
    attributes: list[tuple[str, Value]] = []
    for field, value in _fields(message, where):
        match field, value:
            case 1, int(value):
                number = value
            case 2, bytes(value):
                name = value.decode()
            case 3, int(value):
                kind = value
            case 5, bytes(value):
                at = 0
                while at < len(value):
                    found, at = _varint(value, at, where)
                    after.append(found)
            case 10, bytes(value):
                attributes.append(_attribute(value, where))
            case _:
                raise Unreadable(f"{where}: a node has field {field}")
    if kind not in list(map(int, Kind)):
        raise Unreadable(f"{where}: node {number} is of type {kind}")
    return Node(number, name, Kind(kind), tuple(after), tuple(attributes))


def _attribute(message: bytes, where: str) -> tuple[str, Value]:
    found = dict(_fields(message, where))
    raw = found.pop(1, b"")
    name = raw.decode() if isinstance(raw, bytes) else ""
    field = _FIELDS.get(name)
    if field is None or list(found) != [field]:
        raise Unreadable(f"{where}: attribute `{name[:40]}` is of another type, or is not known")
    value = found[field]
    if isinstance(value, bytes) != (field not in _VARINTS):
        raise Unreadable(f"{where}: attribute `{name}` is of another type")
    if isinstance(value, bytes):
        return name, value.decode()
    return name, bool(value) if field == _BOOL else value
