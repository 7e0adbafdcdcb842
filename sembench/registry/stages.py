"""Digests of code: what a stage's modules *do*, blind to comments, docstrings and formatting.

Costly stages carry a version number in every recipe. Their digest, kept in ``registry/stages.yaml``, is compared by a
test: whoever changes such a module either raises the version (results change, everything is recomputed) or relocks it
with a reason (results cannot change). Cheap rules carry the digest itself as a parameter, so that an edit renders
tables and pages anew while touching or reformatting a file does nothing.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sembench.core.files import write_text
from sembench.registry.models import Stage


def code_digest(root: Path, patterns: Iterable[str]) -> str:
    """Return 16 hex digits over the meaning of all Python files that match glob ``patterns`` below ``root``.

    Files that are no Python (page templates) count byte by byte.
    """
    digest = hashlib.sha256()
    for path in sorted({path for pattern in patterns for path in root.glob(pattern) if path.is_file()}):
        digest.update(path.relative_to(root).as_posix().encode())
        text = path.read_text(encoding="utf-8")
        digest.update(repr(_shape(ast.parse(text))).encode() if path.suffix == ".py" else text.encode())
    return digest.hexdigest()[:16]


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


def relocked(root: Path, name: str, stage: Stage, why: str) -> str:
    """Write a stage's present digest and the reason into registry/stages.yaml and return what changed."""
    path = root / "registry" / "stages.yaml"
    digest = code_digest(root, stage.modules)
    lines = path.read_text(encoding="utf-8").split("\n")
    start = lines.index(f"{name}:")
    end = next(
        (i for i in range(start + 1, len(lines)) if lines[i] and not lines[i].startswith((" ", "#"))), len(lines)
    )
    body = [line for line in lines[start + 1 : end] if not line.startswith(("  digest:", "  why:")) and line.strip()]
    block = [lines[start], *body, f"  digest: {digest}", f"  why: {json.dumps(why)}"]
    write_text(path, "\n".join([*lines[:start], *block, *([""] if end == len(lines) else []), *lines[end:]]))
    return f"{stage.digest or 'none'} -> {digest}"
