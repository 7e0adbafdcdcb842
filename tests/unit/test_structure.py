"""The structure itself: floors, circles, plug-ins that load lightly, code whose versions keep their promise."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from sembench.core.plugin import FAMILIES
from sembench.core.schema import Strict
from sembench.plan.code import changed
from tests.conftest import ROOT

# Top to bottom; a file imports only its own floor and those below.
FLOORS = [
    "cli",
    "reporting",
    "training",
    "evaluation",
    "analogy",
    "data",
    "encoders",
    "results",
    "sources",
    "plan",
    "registry",
    "core",
]
HEAVY = ("torch", "transformers", "pandas", "scipy", "sklearn", "nltk", "onnx", "matplotlib", "numpy")


def files() -> list[Path]:
    return [path for path in (ROOT / "sembench").rglob("*.py") if path.parent != ROOT / "sembench"]


def imports(path: Path) -> set[str]:
    """Return the modules of ours that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("sembench."):
            found.add(node.module)
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                if (ROOT / (module.replace(".", "/") + ".py")).is_file():
                    found.add(module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("sembench.")}
    return found


def test_every_folder_is_a_floor() -> None:
    folders = {path.name for path in (ROOT / "sembench").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == set(FLOORS)


def test_no_import_goes_up() -> None:
    wrong = []
    for path in files():
        own = FLOORS.index(path.relative_to(ROOT / "sembench").parts[0])
        wrong += [
            f"{path.relative_to(ROOT)}: {name}" for name in imports(path) if FLOORS.index(name.split(".")[1]) < own
        ]
    assert not wrong


def test_there_is_no_circle_of_files() -> None:
    """Kahn's algorithm: what is left when files without open imports are taken away again and again is a circle."""
    module = {
        path: ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in files()
    }
    known = set(module.values())
    # An import of a package loads its __init__; importing a sibling through the package is what makes circles.
    graph = {name: {each for each in imports(path) if each in known and each != name} for path, name in module.items()}
    while ready := [name for name, needs in graph.items() if not needs & graph.keys()]:
        for name in ready:
            del graph[name]
    assert not graph


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_plug_in_says_what_it_is(family) -> None:
    assert family.modules
    for kind in family.modules:
        plugin = family.get(kind)
        assert issubclass(plugin.Config, Strict)
        assert isinstance(plugin.version, int)
        assert plugin.__doc__


def test_planning_loads_nothing_heavy() -> None:
    code = (
        "import sys; from pathlib import Path; from sembench.plan import Plan; from sembench.plan.jobs import Jobs\n"
        "from sembench.core.plugin import FAMILIES\n"
        "[family.get(kind) for family in FAMILIES for kind in family.modules]\n"
        "plan = Plan('demo', root=Path(sys.argv[1])); Jobs(plan).rendered()\n"
        f"print(*sorted({{m.split('.')[0] for m in sys.modules}} & set({HEAVY!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(ROOT)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_code_that_makes_something_costly_is_locked_at_its_version() -> None:
    """Results can change: raise the version in the code. They cannot: sembench relock --why "..."."""
    assert changed(ROOT) == {}


def test_functions_and_files_stay_short() -> None:
    """At most 70 lines a function, docstring included, and 450 a file."""
    long = []
    for path in files():
        text = path.read_text()
        if (lines := len(text.splitlines())) > 450:
            long.append(f"{path.relative_to(ROOT)}: {lines} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and (size := (node.end_lineno or 0) - node.lineno + 1) > 70:
                long.append(f"{path.relative_to(ROOT)}, {node.name}: {size} lines")
    assert not long
