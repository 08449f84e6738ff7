"""`opusc show TOPIC` lists what the compiler's own tables hold, at any width."""

import pytest

from opusc.backends.registry import names
from opusc.cli.show import LIBRARY, TOPICS
from opusc.cli.terminal import UsageError
from opusc.cli.topics import topic
from opusc.model.functions import FUNCTIONS
from opusc.model.schema import KINDS
from opusc.model.units import UNITS
from opusc.resources import stdlib_dir


@pytest.mark.parametrize("name", TOPICS)
@pytest.mark.parametrize("width", [40, 60, 80])
def test_topics_fit_the_terminal(name: str, width: int) -> None:
    text = topic(name, None, width)
    assert text.endswith("\n")
    assert max(len(line) for line in text.splitlines() if " " in line.strip()) <= max(width, 60)


def test_topics_are_complete() -> None:
    assert all(name in topic("targets", None, 80) for name in names())
    assert all(name in topic("functions", None, 80) for name in FUNCTIONS)
    assert all(name in topic("units", None, 80) for name in UNITS)
    assert set(LIBRARY) == {path.stem for path in stdlib_dir().glob("*.opus")}
    assert "switches.palomar_136" in topic("switches", None, 80)
    assert "models.gpt3_175b" in topic("models", None, 80)


@pytest.mark.parametrize("kind", KINDS)
def test_fields_of_every_kind(kind: str) -> None:
    text = topic("fields", kind, 80)
    assert all(f"{field.name}:" in text for field in KINDS[kind].fields)


def test_an_unknown_kind_is_a_mistake_of_the_invocation() -> None:
    with pytest.raises(UsageError, match="did you mean `cluster`"):
        topic("fields", "clutser", 80)
