"""Imports point one way, every module says what it offers, and nothing heavy is loaded before it is needed."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "opusc"
MODULES = sorted(PACKAGE.rglob("*.py"))

_FOUNDATION = {"source", "structural", "diagnostics", "resources", "version", "arrays"}

#: What each part of the package may import, besides itself.
ALLOWED: dict[str, set[str]] = {
    "version": set(),
    "source": set(),
    "structural": set(),
    "resources": set(),
    "arrays": set(),
    "progress": set(),
    "output": {"source", "version"},
    "diagnostics": {"source", "resources"},
    "syntax": {"source", "structural", "diagnostics", "resources"},
    "model": {"source", "structural", "diagnostics", "resources", "syntax"},
    "plan": _FOUNDATION | {"model"},
    "verify": _FOUNDATION | {"model", "plan"},
    "schedule": _FOUNDATION | {"model", "plan"},
    "backends": _FOUNDATION | {"model", "plan", "schedule", "verify", "output"},
    "driver": _FOUNDATION | {"syntax", "model", "plan", "schedule", "verify"},
    "control": _FOUNDATION | {"model", "plan", "schedule", "verify", "backends", "driver", "output"},
    "sweep": _FOUNDATION | {"model", "plan", "schedule", "driver"},
    "importers": _FOUNDATION | {"syntax", "model", "plan", "backends", "control"},
    "cli": _FOUNDATION
    | {"syntax", "model", "plan", "schedule", "verify", "backends", "control", "importers", "sweep"}
    | {"driver", "output", "progress"},
    "__main__": {"cli"},
    "__init__": {"version", "diagnostics", "driver", "plan"},
}

HEAVY = {"z3", "networkx", "jsonschema", "graphviz", "lark"}
NUMPY_AT_TOP = {"arrays", "plan", "verify", "backends"}


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(nodes: Iterator[ast.AST]) -> Iterator[str]:
    """Absolute names of imported modules, `opusc.plan.plan` or `numpy`."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where a name comes from"
            module = node.module or ""
            yield from (f"{module}.{alias.name}" if module == "opusc" else module for alias in node.names)


def at_import_time(tree: ast.Module) -> Iterator[ast.AST]:
    """Nodes that run when the module is imported: not in functions, not for type checkers only."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting += node.orelse
            continue
        waiting += ast.iter_child_nodes(node)


def wrong_imports(path: Path, text: str) -> list[str]:
    part = part_of(path)
    found = {name.split(".")[1] for name in imports(ast.walk(ast.parse(text))) if name.startswith("opusc.")}
    return sorted(found - ALLOWED[part] - {part})


def early_imports(path: Path, text: str) -> list[str]:
    banned = HEAVY if part_of(path) in NUMPY_AT_TOP else HEAVY | {"numpy"}
    if part_of(path) == "cli":
        banned = HEAVY
    if part_of(path) == "syntax":
        banned -= {"lark"}  # the stage that needs it; nothing imports it before a program is read
    if path.name == "main.py" and part_of(path) == "cli":
        banned = HEAVY | {"numpy", "argparse", "typing", "collections", "pathlib", "json"}
    return sorted(n for n in imports(at_import_time(ast.parse(text))) if n.split(".")[0] in banned)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_one_way_and_heavy_ones_wait(path: Path) -> None:
    text = path.read_text()
    assert wrong_imports(path, text) == []
    assert early_imports(path, text) == []


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_every_module_says_what_it_is_and_offers(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), "no docstring"
    if path.name == "__init__.py" and len(tree.body) == 1:
        return  # a package that re-exports nothing
    names = [t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)]
    names += [n.target.id for n in tree.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]
    assert "__all__" in names


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_stay_readable(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 400, "a file this long is asked why"
    long = [
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno > 60
    ]
    assert long == []


@pytest.mark.parametrize(
    ("file", "text", "wrong", "early"),
    [
        ("syntax/x.py", "from opusc.model import y", ["model"], []),
        ("backends/x.py", "def f():\n  from opusc.syntax.tree import Program", ["syntax"], []),
        ("plan/x.py", "import opusc.verify", ["verify"], []),
        ("model/x.py", "import numpy as np", [], ["numpy"]),
        ("verify/x.py", "if True:\n  import z3\nimport numpy", [], ["z3"]),
        ("verify/x.py", "def f():\n  import z3", [], []),
        ("cli/main.py", "import argparse", [], ["argparse"]),
        ("syntax/x.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n  import lark", [], []),
    ],
)
def test_the_rules_catch_what_they_are_for(file: str, text: str, wrong: list[str], early: list[str]) -> None:
    path = PACKAGE / file
    assert wrong_imports(path, text) == wrong
    assert early_imports(path, text) == early


def loaded_by(code: str) -> set[str]:
    """Top-level names of the modules that a fresh Python has loaded after `code`."""
    script = f"{code}\nimport sys; print('\\n'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r})\n{script}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {line.split(".")[0] for line in done.stderr.splitlines()}


def test_the_version_costs_no_imports() -> None:
    extra = loaded_by("from opusc.cli.main import main; main(['--version'])") - loaded_by("pass")
    assert extra == {"opusc"}


def test_importing_opusc_costs_no_numpy() -> None:
    assert not loaded_by("import opusc; opusc.__version__; dir(opusc)") & (HEAVY | {"numpy"})


def test_check_loads_only_what_it_needs() -> None:
    program = PACKAGE.parent / "examples" / "quickstart" / "quickstart.opus"
    loaded = loaded_by(f"from opusc.cli.main import main; assert main(['check', {str(program)!r}]) == 0")
    assert {"lark", "z3", "numpy"} <= loaded
    assert not loaded & {"networkx", "jsonschema", "graphviz"}
