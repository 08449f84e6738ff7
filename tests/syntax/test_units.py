"""Every unit is read as one, also where an `=` follows."""

import pytest

from opusc.diagnostics import Diagnostics
from opusc.model.units import UNITS
from opusc.source import Source
from opusc.syntax import tree
from opusc.syntax.parser import parse


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_before_an_equals_sign(unit: str) -> None:
    sink = Diagnostics()
    program = parse(Source("t", f"opus 1\nparam p in 1 {unit}..2{unit} = 1 {unit}\n"), sink)
    assert not list(sink), [d.message for d in sink]
    [parameter] = program.entries
    assert isinstance(parameter, tree.Parameter)
    assert isinstance(parameter.domain, tree.Range)
    assert isinstance(parameter.domain.last, tree.Quantity)
    assert parameter.domain.last.unit == unit
