"""Resolving a variant at a scale, once: what extends what, and what the scale lays over it.

The layers of a variant, each laid over those before: its bases and itself (``extends``), the scale's recipe for every
trained variant, the scale's overlays on the bases and on the variant, and last what the entries themselves say for
that scale (``scales:``). ``Resolved.origins`` names for every key the layer that it is from. Which data set or backbone
a scale uses in place of another (``substitutes``, ``fallbacks``) is decided later, by ``Artefacts.used``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sembench.core.errors import SembenchError, unknown
from sembench.core.schema import Merged, merged, parse
from sembench.registry.load import Registry
from sembench.registry.models import Variant

Layer = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Resolved:
    """A variant as it holds at a scale, and where each of its keys is from (``recipe.max_steps`` -> ``scale demo``)."""

    variant: Variant
    origins: dict[str, str]


def resolved(registry: Registry, scale: str, key: str) -> Resolved:
    """Return a variant at a scale.

    Raises:
        SembenchError: an unknown name, a mere base, or an overlay with a key that a variant does not have.
    """
    if key not in registry.variants:
        raise unknown("variant", key, registry.variants, "registry/variants.yaml")
    layers = list(_layers(registry, scale, key))
    entry: Merged = {}
    origins: dict[str, str] = {}
    for origin, layer in layers:
        before = entry
        entry = merged(entry, layer)
        for path, value in _leaves(layer):
            # A layer that repeats a value changes nothing; the reader wants to know who decided.
            if path not in origins or _at(before, path) != value:
                origins[path] = origin
    variant = parse(Variant, entry, f"variant '{key}' at scale '{scale}'")
    if variant.abstract or variant.backbone is None:
        raise SembenchError(f"registry/variants.yaml: '{key}' is only a base for others; name one that extends it")
    return Resolved(variant, origins)


def _layers(registry: Registry, scale: str, key: str) -> Iterator[Layer]:
    own, lineage = registry.scale(scale), registry.lineage(key)
    written = [(name, registry.variants[name]) for name in lineage]
    trained = any(entry.get("recipe") is not None for _, entry in written)
    for name, entry in written:
        kept = {k: v for k, v in entry.items() if k not in ("extends", "scales")}
        yield f"variants.yaml, {name}", {"abstract": False, **kept}
    if trained and own.recipe:
        yield f"scales.yaml, {scale}, recipe", {"recipe": own.recipe}
    for name in lineage:
        if name in own.variants:
            yield f"scales.yaml, {scale}, variants.{name}", own.variants[name]
    for name, entry in written:
        if laid := dict(entry.get("scales") or {}).get(scale):
            yield f"variants.yaml, {name}, scales.{scale}", laid


def _leaves(layer: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in layer.items():
        place = f"{path}.{key}" if path else key
        if isinstance(value, Mapping):
            yield from _leaves(value, place)
        else:
            yield place, value


def _at(entry: Mapping[str, Any], path: str) -> Any:
    found: Any = entry
    for key in path.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found
