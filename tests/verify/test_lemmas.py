"""Every lemma holds for the formulas in use and is refuted for a wrong one, so that none holds for nothing."""

from dataclasses import dataclass
from typing import Any

import pytest

from opusc.model.entities import Matrix
from opusc.plan.neighbours import Advance, Digit, Neighbour, Rotation, Round, Table
from opusc.plan.plan import Directions, Link
from opusc.verify import lemmas, link_lemmas
from opusc.verify.irregular import clash_core, isolation, one_to_one
from opusc.verify.statement import Statement, answer, smt2, solve
from opusc.verify.symbolic import statements
from tests.verify.plans import PLANS, plan

SIZES = [2, 3, 4, 7, 8, 64, 131072]
BOTH, FORWARD, BACKWARD = Directions.BOTH, Directions.FORWARD, Directions.BACKWARD


def verdicts(*found: Statement) -> list[str]:
    return [solve(statement).verdict for statement in found]


def proved(*found: Statement) -> bool:
    return set(verdicts(*found)) == {"proved"}


# --- numbering -----------------------------------------------------------------------------------

GRID = ((8, 1), (4, 8), (6, 32))  # tp 8, dp 4, pp 6


def test_mixed_radix() -> None:
    assert proved(lemmas.numbers_are_distinct("", GRID), lemmas.numbers_are_in_range("", GRID, 192))


@pytest.mark.parametrize(
    "wrong",
    [
        ((8, 1), (4, 8), (6, 31)),  # off by one
        ((8, 1), (4, 6), (6, 8)),  # strides of two axes swapped
        ((8, 1), (4, 1), (6, 32)),  # stride missing
        ((9, 1), (4, 8), (6, 32)),  # an axis larger than the stride of the next
    ],
)
def test_wrong_strides_are_refuted(wrong: tuple[tuple[int, int], ...]) -> None:
    assert verdicts(lemmas.numbers_are_distinct("", wrong)) == ["refuted"]


def test_too_few_ranks_are_refuted() -> None:
    assert verdicts(lemmas.numbers_are_in_range("", GRID, 191)) == ["refuted"]


def test_stages_are_apart_unless_their_stride_is_wrong() -> None:
    assert proved(lemmas.other_stage_other_rank(GRID, 2))
    assert verdicts(lemmas.other_stage_other_rank(((8, 1), (4, 8), (6, 8)), 2)) == ["refuted"]


def test_placement() -> None:
    assert proved(lemmas.numbers_are_distinct("", ((6, 1), (16, 8))))
    # More GPUs in use than a domain has: the last ones are those of the next domain.
    assert verdicts(lemmas.numbers_are_distinct("", ((9, 1), (16, 8)))) == ["refuted"]
    assert proved(lemmas.listed_nodes_are_distinct((4, 2, 7), 8), lemmas.listed_placement_is_one_to_one(4))
    assert verdicts(lemmas.listed_nodes_are_distinct((4, 2, 4), 8)) == ["refuted"]
    assert verdicts(lemmas.listed_nodes_are_distinct((4, 2, 8), 8)) == ["refuted"]


def test_positions() -> None:
    assert proved(lemmas.positions_are_distinct(16, 1, 2, 1), lemmas.positions_are_in_range(16, 1, 2, 1, 32))
    assert proved(lemmas.positions_are_distinct(16, 25, 3, 2), lemmas.positions_are_in_range(16, 25, 3, 2, 120))


def no_stride(slot: Any, port: Any, fibre: Any, first: int, ports: int, per_port: int) -> Any:
    return first + slot + port + fibre


def one_too_far(slot: Any, port: Any, fibre: Any, first: int, ports: int, per_port: int) -> Any:
    return lemmas.position(slot, port, fibre, first, ports, per_port) + 1


def receivers_on_transmitters(slot: Any, port: Any, fibre: Any, first: int, ports: int, per_port: int) -> Any:
    return first + (slot * ports + port) + fibre


def test_wrong_positions_are_refuted() -> None:
    assert verdicts(lemmas.positions_are_distinct(16, 1, 2, 1, formula=no_stride)) == ["refuted"]
    assert verdicts(lemmas.positions_are_distinct(16, 1, 2, 2, formula=receivers_on_transmitters)) == ["refuted"]
    assert verdicts(lemmas.positions_are_in_range(16, 1, 2, 1, 32, formula=one_too_far)) == ["refuted"]
    assert verdicts(lemmas.positions_are_in_range(16, 0, 2, 1, 32)) == ["refuted"]
    assert verdicts(lemmas.positions_are_in_range(17, 1, 2, 1, 32)) == ["refuted"]


def test_ranges_of_a_shared_chassis() -> None:
    assert proved(lemmas.ranges_are_disjoint([(1, 8), (25, 8), (9, 16)]))
    assert verdicts(lemmas.ranges_are_disjoint([(1, 8), (25, 8), (8, 16)])) == ["refuted"]


# --- neighbour functions -------------------------------------------------------------------------


class NoWrap(Rotation):
    def image(self, d: Any, odd: Any, where: Any) -> Any:
        return d >= 0, d + self.by


class WrapsLate(Rotation):
    def image(self, d: Any, odd: Any, where: Any) -> Any:
        to = d + self.by
        return d >= 0, where(to > self.digit.size, to - self.digit.size, to)


class WrapsToOne(Rotation):
    def image(self, d: Any, odd: Any, where: Any) -> Any:
        to = d + self.by
        return d >= 0, where(to >= self.digit.size, to - self.digit.size + 1, to)


class StandsStill(Rotation):
    def image(self, d: Any, odd: Any, where: Any) -> Any:
        return d >= 0, d


class Parity(Advance):
    """Even links that forget to look at the parity: they are all the links."""

    def image(self, d: Any, odd: Any, where: Any) -> Any:
        return Advance(self.digit, self.wrap).image(d, odd, where)


@dataclass(frozen=True)
class FromBothEnds(Round):
    """A round that draws each pair from both of its ends."""

    def image(self, d: Any, odd: Any, where: Any) -> Any:
        modulus = self.digit.size - 1 + self.digit.size % 2
        partner = where(self.number - d < 0, self.number - d + modulus, self.number - d)
        return d >= 0, partner


@pytest.mark.parametrize("n", SIZES)
def test_neighbour_functions(n: int) -> None:
    whole = Digit(1, n)
    functions: list[Neighbour] = [Rotation(whole, 1), Round(whole, 0), Advance(whole, wrap=False)]
    functions += [Advance(whole, wrap=True, edges=edges) for edges in ("all", "even", "odd", "closing")]
    for function in functions:
        assert proved(*link_lemmas.neighbour_lemmas(function)), function


@pytest.mark.parametrize("wrong", [NoWrap, WrapsLate, WrapsToOne, StandsStill])
def test_wrong_rotations_are_refuted(wrong: type[Rotation]) -> None:
    assert "refuted" in verdicts(*link_lemmas.neighbour_lemmas(wrong(Digit(1, 8), 3)))


def test_wrong_tables_and_rounds_are_refuted() -> None:
    for wrong in (Table((1, 2, 1)), Table((0, 2, 1)), Table((1, 3, -1)), FromBothEnds(Digit(1, 6), 2)):
        assert "refuted" in verdicts(*link_lemmas.neighbour_lemmas(wrong)), wrong


# --- ports ---------------------------------------------------------------------------------------


def port_statements(links: list[Link], n: int, independent: bool = False) -> list[Statement]:
    return [s for _, make in link_lemmas.ports_are_used_once(links, n, independent) for s in make()]


@pytest.mark.parametrize("n", SIZES)
def test_matchings_use_a_port_once(n: int) -> None:
    whole = Digit(1, n)
    matchings: list[Neighbour] = [Round(whole, 0), Advance(whole, wrap=n % 2 == 0, edges="odd")]
    for function in [*matchings, Advance(whole, wrap=n % 2 == 0, edges="even")]:
        found = port_statements([Link(function, 0, 0, BOTH)], n)
        assert len(found) == 1
        assert proved(*found)


def test_what_is_no_matching_needs_two_ports() -> None:
    whole = Digit(1, 6)
    assert port_statements([Link(Rotation(whole, 1), 0, 1, BOTH)], 6) == []
    wrong: list[Neighbour] = [Rotation(whole, 1), Advance(whole, wrap=False), Parity(whole, wrap=True, edges="even")]
    for function in [*wrong, FromBothEnds(whole, 2)]:
        assert verdicts(*port_statements([Link(function, 0, 0, BOTH)], 6)) == ["refuted"], function


def test_two_links_on_one_port() -> None:
    low, high = Digit(1, 2), Digit(2, 3)
    even, odd = (Advance(Digit(1, 6), wrap=True, edges=edges) for edges in ("even", "odd"))
    # Independent ports: one sends, the other hears, so one port serves a ring one way.
    assert proved(*port_statements([Link(even, 0, 0, FORWARD), Link(odd, 0, 0, FORWARD)], 6, independent=True))
    assert "refuted" in verdicts(*port_statements([Link(even, 0, 0, FORWARD), Link(odd, 0, 0, BACKWARD)], 6, True))
    assert "refuted" in verdicts(*port_statements([Link(even, 0, 0, BOTH), Link(odd, 0, 0, BOTH)], 6))
    across = [Link(Round(low, 0), 0, 0, BOTH), Link(Round(high, 0), 0, 0, BOTH)]
    assert "refuted" in verdicts(*port_statements(across, 6))
    assert proved(*port_statements([across[0], Link(Round(high, 0), 1, 1, BOTH)], 6))


# --- topologies ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 4, 7, 8, 131072])
def test_rings_and_chains(n: int) -> None:
    whole = Digit(1, n)
    parities = ["even", "odd", "closing"] if n % 2 else ["even", "odd"]
    ring = [Link(Advance(whole, wrap=n % 2 == 0, edges=edges), 0, 0, BOTH) for edges in parities]
    assert proved(*link_lemmas.succession_lemmas(ring, n, ring=True, one_way=False))
    turn = [Link(Rotation(whole, 1), 0, 0, FORWARD)]
    assert proved(*link_lemmas.succession_lemmas(turn, n, ring=True, one_way=True))
    chain = [Link(Advance(whole, wrap=False), 0, 0, FORWARD), Link(Advance(whole, wrap=False), 1, 1, BACKWARD)]
    assert proved(*link_lemmas.succession_lemmas(chain, n, ring=False, one_way=False))


def test_wrong_rings_and_chains_are_refuted() -> None:
    whole = Digit(1, 8)
    wrong: list[tuple[list[Link], bool]] = [
        ([Link(Rotation(whole, 2), 0, 1, BOTH)], True),  # two rings
        ([Link(Rotation(whole, 1), 0, 0, FORWARD)], True),  # one way only
        ([Link(Advance(whole, wrap=False), 0, 1, BOTH)], True),  # not closed
        ([Link(Advance(whole, wrap=True, edges="even"), 0, 0, BOTH)], True),  # every second link
        ([Link(Advance(whole, wrap=True), 0, 1, BOTH)], False),  # a chain that closes
        ([Link(Advance(whole, wrap=False, edges="odd"), 0, 0, BOTH)], False),
        ([Link(Table((1, 0, 3, 2, 5, 4, 7, 6)), 0, 0, BOTH)], True),
    ]
    for links, ring in wrong:
        assert "refuted" in verdicts(*link_lemmas.succession_lemmas(links, 8, ring=ring, one_way=False)), links


@pytest.mark.parametrize("n", [2, 3, 4, 7, 8, 131072])
def test_every_pair_meets(n: int) -> None:
    rotation, tournament = Rotation(Digit(1, n), 1), Round(Digit(1, n), 0)
    assert proved(
        link_lemmas.distances_meet_every_pair(rotation, half=False),
        link_lemmas.distances_meet_every_pair(rotation, half=True),
        link_lemmas.rounds_meet_every_pair(tournament),
    )


@pytest.mark.parametrize("n", [4, 7, 8])
def test_wrong_distances_and_rounds_are_refuted(n: int) -> None:
    rotation, tournament = Rotation(Digit(1, n), 1), Round(Digit(1, n), 0)
    assert (
        verdicts(
            link_lemmas.distances_meet_every_pair(rotation, half=False, wrong=1),
            link_lemmas.distances_meet_every_pair(rotation, half=True, wrong=1),
            link_lemmas.distances_meet_every_pair(NoWrap(Digit(1, n), 1), half=False),
            link_lemmas.rounds_meet_every_pair(tournament, wrong=1),
        )
        == ["refuted"] * 4
    )


# --- change --------------------------------------------------------------------------------------


@pytest.mark.parametrize("crossbar", [True, False])
def test_any_change_is_safe_in_the_right_order_only(crossbar: bool) -> None:
    assert proved(*lemmas.changes_are_safe(crossbar=crossbar))
    assert verdicts(*lemmas.changes_are_safe(crossbar=crossbar, ordered=False)) == ["refuted", "proved"]
    assert verdicts(*lemmas.changes_are_safe(crossbar=crossbar, minimal=False)) == ["proved", "refuted"]


# --- irregular rows ------------------------------------------------------------------------------


def rows_of(name: str) -> tuple[Any, ...]:
    whole = plan(name)
    c = whole.circuits
    rows = (c.switch == 0).nonzero()[0]
    return whole, c.part[rows].copy(), c.ingress[rows].copy(), c.egress[rows].copy()


@pytest.mark.parametrize("name", ["crossbar, duplex", "any, duplex", "any, bidi", "listed cables"])
def test_circuits_of_a_switch(name: str) -> None:
    whole, part, ingress, egress = rows_of(name)
    switch = whole.switches[0]
    assert proved(one_to_one(switch, part, ingress, egress))
    assert proved(isolation(switch, part, ingress, egress, whole.excluded_with))
    top = switch.kind.radix * (2 if switch.kind.matrix is Matrix.CROSSBAR else 1)
    for value in (egress[1], -1, 0, top + 1):  # of another circuit, negative, no position, beyond the last
        wrong = egress.copy()
        wrong[0] = value
        assert verdicts(one_to_one(switch, part, ingress, wrong)) == ["refuted"], value
    nothing_excluded = tuple(frozenset[int]() for _ in whole.parts)
    assert verdicts(isolation(switch, part, ingress, egress, nothing_excluded)) == ["refuted"]


def test_a_blocked_position_is_refuted() -> None:
    from dataclasses import replace

    whole, part, ingress, egress = rows_of("crossbar, duplex")
    switch = whole.switches[0]
    for position in (int(ingress[0]), int(egress[0]) - switch.kind.radix):
        dark = replace(switch, kind=replace(switch.kind, blocked=(position,)))
        assert verdicts(one_to_one(dark, part, ingress, egress)) == ["refuted"]


def test_the_core_names_exactly_the_circuits_that_clash() -> None:
    ports = list(range(1, 400))
    ports[17] = ports[230]
    assert clash_core(list(range(399)), ports) == [17, 230]
    assert clash_core([4, 5, 6], [1, 2, 3]) == []


# --- statements ----------------------------------------------------------------------------------


def test_no_answer_is_no_proof() -> None:
    import z3

    x, y, n = z3.Ints("x y n")
    hard = Statement("Fermat", (x > 1, y > 1, n > 1, x**3 + y**3 == n**3))
    assert solve(hard, timeout=30).verdict == "unknown"


def test_statements_are_written_for_other_solvers() -> None:
    lines = list(smt2([lemmas.numbers_are_distinct("ranks differ", GRID), lemmas.listed_nodes_are_distinct((0, 1), 2)]))
    assert lines[0].startswith("; ranks differ\n(set-logic ALL)\n(set-info :status unsat)\n")
    assert all(text.endswith("(check-sat)\n(reset)\n") for text in lines)
    assert [answer(text.removesuffix("(reset)\n")) for text in lines] == ["unsat", "sat"]


def test_what_is_no_smt_lib_has_no_answer() -> None:
    with pytest.raises(ValueError, match="unknown constant"):
        answer("(assert (< a 3))\n(check-sat)\n")


@pytest.mark.parametrize("name", PLANS)
def test_no_statement_is_made_twice(name: str) -> None:
    from opusc.verify.layout import expected_cabling, placing_of

    whole = plan(name)
    found = statements(whole, placing_of(whole.model.job), expected_cabling(whole)[1])
    texts = [str(s.assertions) for s in found]
    assert len(set(texts)) == len(texts)


def test_the_number_of_statements_does_not_grow_with_the_cluster() -> None:
    from opusc.verify.layout import expected_cabling, placing_of
    from tests.support import make_plan

    counts = set()
    for dp in (4, 16, 64):
        whole = make_plan(nodes=4 * dp, gpus=8, tp=8, dp=dp, pp=4)
        counts.add(len(statements(whole, placing_of(whole.model.job), expected_cabling(whole)[1])))
    assert len(counts) == 1
