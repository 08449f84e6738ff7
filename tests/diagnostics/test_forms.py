"""The forms for programs: one-liners and JSON; and the edits they carry."""

import json

import jsonschema
import pytest

from opusc.diagnostics import Diagnostics, Edit, Label, concise, text
from opusc.diagnostics import json as as_json
from opusc.diagnostics.codes import CODES
from opusc.diagnostics.explain import UnknownCodeError, code_named
from opusc.diagnostics.patch import apply
from opusc.source import Source

PROGRAM = Source("é/bench.opus", "opus 1\nlet rate = 200\n")


def sink() -> Diagnostics:
    found = Diagnostics()
    span = PROGRAM.span(18, 21)
    found.error(
        "OPUS001",
        "200 has no unit",
        span,
        "here",
        secondary=[Label(PROGRAM.span(7, 10), "there")],
        notes=["n"],
        help="h",
        fix=[Edit(span, "200 Gbps")],
    )
    found.warning("OPUS001", "careful", PROGRAM.span(0, 4))
    return found


def test_concise_is_one_line_a_message_whatever_it_says() -> None:
    found = sink()
    found.error("OPUS001", "two\nlines\x1b", PROGRAM.span(0, 1))
    lines = concise.render(found).split("\n")
    assert lines[-1] == ""
    assert "é/bench.opus:2:12: error[OPUS001] 200 has no unit" in lines
    assert "é/bench.opus:1:1: warning[OPUS001] careful" in lines
    assert len(lines) == len(found) + 1


def test_json_follows_its_schema() -> None:
    schema = json.loads(as_json.schema_file().read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(as_json.document(sink()))
    validator.validate(as_json.document([]))
    wrong = as_json.document(sink())
    del wrong["diagnostics"][0]["span"]["start"]["line"]
    assert list(validator.iter_errors(wrong))


def test_json_places_count_as_documented() -> None:
    document = json.loads(as_json.render(sink()))
    assert document["summary"] == {"errors": 1, "warnings": 1}
    error = document["diagnostics"][1]
    assert error["span"]["start"] == {"offset": 18, "line": 2, "column": 12}
    assert error["span"]["end"] == {"offset": 21, "line": 2, "column": 15}
    assert error["slug"] == "unexpected-text"
    edit = error["fix"]["edits"][0]
    start, end = edit["span"]["start"]["offset"], edit["span"]["end"]["offset"]
    assert PROGRAM.text[:start] + edit["replacement"] + PROGRAM.text[end:] == "opus 1\nlet rate = 200 Gbps\n"
    assert document["diagnostics"][0]["fix"] is None


def test_edits_apply_in_any_order_and_overlaps_are_left_out() -> None:
    source = Source("x", "abcdef")
    edits = [Edit(source.span(4, 5), "E"), Edit(source.span(0, 2), "AB"), Edit(source.span(1, 3), "no")]
    edits.append(Edit(source.span(6, 6), "!"))
    assert apply(source, edits) == "ABcdEf!"


def test_codes_are_found_by_any_spelling() -> None:
    for spelling in ("OPUS001", "opus001", "1", "001", "error[OPUS001]", "unexpected-text"):
        assert code_named(spelling) == "OPUS001"


def test_an_unknown_code_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownCodeError, match="did you mean `OPUS001`"):
        code_named("OPUS01")
    with pytest.raises(UnknownCodeError, match="did you mean `unexpected-text`"):
        code_named("unexpectd-text")
    with pytest.raises(UnknownCodeError, match="no message `zzz`"):
        code_named("zzz")
    assert "OPUS999" not in CODES


def test_messages_beyond_the_limit_are_not_dropped_in_silence() -> None:
    found = Diagnostics()
    for at in range(Diagnostics.LIMIT):
        found.error("OPUS001", f"wrong {at}", PROGRAM.span(0, 1))
    found.error("OPUS001", "wrong 0", PROGRAM.span(0, 1))
    assert not found.cut, "a double is no further message"
    assert text.summary(found, cut=found.cut) == "200 errors"
    found.error("OPUS001", "wrong 200", PROGRAM.span(0, 1))
    assert (len(found), found.cut) == (200, True)
    assert text.summary(found, cut=found.cut) == "200 errors; there are more: repair these first"
    document = as_json.document(found, cut=found.cut)
    assert document["summary"] == {"errors": 200, "warnings": 0, "more": True}
    jsonschema.validate(document, json.loads(as_json.schema_file().read_text()))
