"""Digests of code: what an engine's or plug-in's files *do*, blind to comments, docstrings and formatting.

Whatever makes something costly carries a version, which is part of the keys of all that it makes. The digest beside
that version in ``registry/code.yaml`` is compared by a test: whoever changes such a file either raises the version
(results change, and everything that it made is computed anew) or relocks it with a reason (results cannot change).
A digest covers the files that a plug-in imports, down to the engines, which have versions of their own. Views are
cheap: the digest of their code is part of the name of a stamp beside them (see ``Jobs.stamp``), so that an edit renders
anew while touching or reformatting a file does nothing.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sembench.core.errors import SembenchError, unknown
from sembench.core.files import write_text
from sembench.core.plugin import CONVERTERS, MAKERS, OBJECTIVES, PROTOCOLS, TRANSFORMS
from sembench.plan.engines import ENGINES
from sembench.registry.load import read_yaml

LOCKS = Path("registry/code.yaml")
# Floors that no digest covers: they move and describe what others compute, and what they decide (parameters, checksums)
# is part of the keys.
_OUTSIDE = ("sembench/core/", "sembench/registry/", "sembench/plan/", "sembench/sources/", "sembench/results/")
_HEADER = """\
# Versions of engines and plug-ins with the digests of their code at that version (see sembench/plan/code.py).
# `sembench relock --why "..."` records edits that cannot change results; else raise the version in the code first.
"""


@dataclass(frozen=True)
class Unit:
    """Code with a version, an engine or a plug-in, under its name in registry/code.yaml, such as ``maker/lines``."""

    name: str
    version: int
    roots: tuple[str, ...]


def units() -> list[Unit]:
    """Return all engines, and all plug-ins that make something costly."""
    found = [Unit(f"engine/{name}", engine.version, engine.roots) for name, engine in ENGINES.items()]
    for family in (OBJECTIVES, MAKERS, CONVERTERS, TRANSFORMS, PROTOCOLS):
        for kind, module in family.modules.items():
            root = module.replace(".", "/") + ".py"
            found.append(Unit(f"{family.name}/{kind}", family.get(kind).version, (root,)))
    return sorted(found, key=lambda unit: unit.name)


def unit_digest(root: Path, unit: Unit) -> str:
    """Return 16 hex digits over the meaning of a unit's files and of what they import."""
    engines = {path for engine in ENGINES.values() for path in engine.roots} - set(unit.roots)
    return code_digest(root, closure(root, unit.roots, engines))


def closure(root: Path, roots: Iterable[str], stop: Iterable[str] = ()) -> list[str]:
    """Return the project's files that some files import, themselves included; ``stop`` ends the walk."""
    stopped, seen, waiting = set(stop), set[str](), list(roots)
    while waiting:
        path = waiting.pop()
        if path not in seen and path not in stopped and not path.startswith(_OUTSIDE):
            seen.add(path)
            waiting += imported(root, path)
    return sorted(seen)


@functools.cache
def imported(root: Path, path: str) -> tuple[str, ...]:
    """Return the project's files that a file imports, wherever in it, imports for type checkers apart."""
    found: list[str] = []
    for node in _running(ast.parse((root / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += [f"{node.module}.{alias.name}" for alias in node.names] + [node.module]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    files = [f"{name.replace('.', '/')}.py" for name in found if name.startswith("sembench")]
    return tuple(dict.fromkeys(file for file in files if (root / file).is_file()))


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a program without the blocks under ``if TYPE_CHECKING``."""
    yield node
    for child in ast.iter_child_nodes(node):
        checking = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
        for inner in child.orelse if checking and isinstance(child, ast.If) else [child]:
            yield from _running(inner)


def code_digest(root: Path, paths: Iterable[str]) -> str:
    """Return 16 hex digits over the meaning of files; those that are no Python (page templates) count byte by byte."""
    found = hashlib.sha256()
    for path in sorted(paths):
        found.update(path.encode())
        text = (root / path).read_text(encoding="utf-8")
        found.update(repr(_shape(ast.parse(text))).encode() if path.endswith(".py") else text.encode())
    return found.hexdigest()[:16]


def _shape(node: Any) -> Any:
    """Return a nested tuple of node types and values that is equal for programs that do the same.

    ``ast.dump`` prints empty fields differently from one Python release to the next, hence a walk of our own.
    """
    if isinstance(node, ast.AST):
        return (type(node).__name__, tuple(_fields(node)))
    if isinstance(node, list):
        return tuple(_shape(item) for item in node)
    return repr(node)


def _fields(node: ast.AST) -> Iterator[tuple[str, Any]]:
    for name, value in ast.iter_fields(node):
        kept = _without_docstring(node, value) if name == "body" and isinstance(value, list) else value
        if kept not in (None, []):
            yield name, _shape(kept)


def _without_docstring(node: ast.AST, body: list[ast.stmt]) -> list[ast.stmt]:
    documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    first = body[0] if body else None
    if (
        documented
        and isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    ):
        return body[1:]
    return body


# ---------------------------------------------------------------------------------------------------------- locks


def read_locks(root: Path) -> dict[str, dict[str, Any]]:
    """Return version, digest and reason of every locked unit.

    Raises:
        SembenchError: the file is damaged.
    """
    locks = read_yaml(root / LOCKS) if (root / LOCKS).is_file() else {}
    for name, lock in locks.items():
        if not isinstance(lock, dict) or not {"version", "digest"} <= lock.keys():
            raise SembenchError(f"{LOCKS}: '{name}' lacks version or digest; restore the file from version control")
    return locks


def changed(root: Path) -> dict[str, str]:
    """Return the units whose code differs from what is locked, each with what is to be done."""
    locks = read_locks(root)
    found = {}
    for unit in units():
        lock = locks.get(unit.name)
        if lock is None:
            found[unit.name] = "is not locked yet"
        elif lock["version"] != unit.version:
            found[unit.name] = f"has version {unit.version} now, locked is {lock['version']}"
        elif lock["digest"] != unit_digest(root, unit):
            found[unit.name] = f"changed at version {unit.version}: raise it if results can change"
    return found


def relock(root: Path, why: str, names: Iterable[str] = ()) -> dict[str, str]:
    """Lock the changed units (or those named) at their present version and code, and return what changed.

    Raises:
        SembenchError: an unknown unit, or nothing to lock.
    """
    known = {unit.name: unit for unit in units()}
    open_units = changed(root)
    chosen = list(names) or list(open_units)
    for name in chosen:
        if name not in known:
            raise unknown("unit", name, known, str(LOCKS))
    if not chosen:
        raise SembenchError(f"{LOCKS} agrees with the code; there is nothing to relock")
    locks = {name: lock for name, lock in read_locks(root).items() if name in known}
    for name in chosen:
        unit = known[name]
        locks[name] = {"version": unit.version, "digest": unit_digest(root, unit), "why": why}
    body = yaml.safe_dump(dict(sorted(locks.items())), sort_keys=False, allow_unicode=True, width=1000)
    write_text(root / LOCKS, _HEADER + body)
    return {name: open_units.get(name, "relocked") for name in chosen}


@functools.cache
def views_digest(root: Path) -> str:
    """Return the digest of all code behind tables, figures and the page."""
    code = [*root.glob("sembench/reporting/**/*.py"), *root.glob("sembench/results/*.py"), *root.glob("report/*")]
    return code_digest(root, [path.relative_to(root).as_posix() for path in code if path.is_file()])
