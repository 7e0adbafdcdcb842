"""Plug-ins: whatever YAML chooses by ``kind`` is one file, with its own parameters and its own version.

A family is a package; a kind is a module in it. The file ends with ``PLUGIN = TheClass``; the class carries

* ``Config``: a strict model of its parameters (the keys beside ``kind``),
* ``version``: raised whenever what it makes changes; it is part of the key of everything that it makes.

Nothing lists the kinds: a new file is a new kind. Modules load when they are first asked for, and lightly (see
``sembench.core.lazy``), since planning asks for all of them.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

from sembench.core.errors import SembenchError, shortened, unknown
from sembench.core.schema import Strict, deciding, parse


class Plugin(Protocol):
    """What every plug-in class carries."""

    Config: ClassVar[type[Strict]]
    version: ClassVar[int]


P = TypeVar("P", bound=Plugin)


@dataclass(frozen=True)
class Chosen(Generic[P]):
    """A kind with its checked parameters, as an entry of the registry names it."""

    kind: str
    plugin: type[P]
    config: Strict

    @property
    def params(self) -> dict[str, Any]:
        """All that decides what it makes: kind, version, and the parameters that enter keys, defaults included."""
        return {"kind": self.kind, "version": self.plugin.version, **deciding(self.config)}

    @property
    def values(self) -> dict[str, Any]:
        """Kind and every parameter, for people."""
        return {"kind": self.kind, **self.config.model_dump(mode="json")}


class Family(Generic[P]):
    """The plug-ins of one sort, such as objectives."""

    def __init__(self, name: str, *packages: str) -> None:
        self.name = name
        self.packages = packages

    @functools.cached_property
    def modules(self) -> dict[str, str]:
        """Modules by kind; ``base.py`` and files whose name begins with an underscore are no kinds but shared code."""
        found: dict[str, str] = {}
        for package in self.packages:
            for entry in pkgutil.iter_modules(importlib.import_module(package).__path__):
                if not entry.name.startswith("_") and entry.name != "base":
                    found[entry.name] = f"{package}.{entry.name}"
        return found

    def get(self, kind: str, where: str = "") -> type[P]:
        """Return the class of a kind.

        Raises:
            SembenchError: there is no such kind, or its file names no class.
        """
        if kind not in self.modules:
            folders = " or ".join(package.replace(".", "/") for package in self.packages)
            error = unknown(f"{self.name} kind", kind, self.modules, folders)
            raise SembenchError(f"{where}: {error}" if where else str(error))
        module = importlib.import_module(self.modules[kind])
        if not hasattr(module, "PLUGIN"):
            file = f"{self.modules[kind].replace('.', '/')}.py"
            raise SembenchError(f"{file} does not say which class is its plug-in; end it with 'PLUGIN = TheClass'")
        return cast("type[P]", module.PLUGIN)

    def parse(self, raw: Any, where: str) -> Chosen[P]:
        """Return the plug-in that an entry with the key ``kind`` chooses, its parameters checked.

        Raises:
            SembenchError: no kind, an unknown kind, or parameters that the kind does not take.
        """
        if not isinstance(raw, Mapping):
            raise SembenchError(f"{where}: must be a mapping with the key 'kind', not {shortened(repr(raw))}")
        if not isinstance(raw.get("kind"), str):
            raise SembenchError(f"{where}: the key 'kind' is missing; known kinds: {', '.join(sorted(self.modules))}")
        kind = raw["kind"]
        plugin = self.get(kind, where)
        config = parse(plugin.Config, {key: value for key, value in raw.items() if key != "kind"}, where)
        return Chosen(kind, plugin, config)


OBJECTIVES: Family[Any] = Family("objective", "sembench.training.objectives")
MAKERS: Family[Any] = Family("maker", "sembench.data.make", "sembench.analogy.make")
CONVERTERS: Family[Any] = Family("converter", "sembench.encoders.convert")
TRANSFORMS: Family[Any] = Family("transform", "sembench.encoders.transforms")
PROTOCOLS: Family[Any] = Family("protocol", "sembench.evaluation.protocols")
VIEWS: Family[Any] = Family("view", "sembench.reporting.views")
FAMILIES: tuple[Family[Any], ...] = (OBJECTIVES, MAKERS, CONVERTERS, TRANSFORMS, PROTOCOLS, VIEWS)
