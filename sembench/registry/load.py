"""Reading the registry's YAML files into models, with errors that name file, key and the nearest valid name."""

from __future__ import annotations

import csv
import functools
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sembench.core.errors import SembenchError, unknown
from sembench.core.schema import Merged, Model, Name, Strict, merged, parse
from sembench.registry.models import (
    AnyFigure,
    Backbone,
    CurveFigure,
    Dataset,
    Figure,
    FrameTable,
    Readout,
    Recipe,
    Scale,
    Stage,
    Suite,
    Table,
    Variant,
)

# Data sets that the workflow makes itself; where they lie depends on the scale.
DERIVED = {name: f"{name}.parquet" for name in ("dsbats_sn", "dsbats4cl", "dsbats4cl_held_out", "dsbats_open")}


def project_root() -> Path:
    """Return the folder with ``Snakefile`` and ``registry/``: ``SEMBENCH_ROOT``, the nearest one above, or ours."""
    if named := os.environ.get("SEMBENCH_ROOT"):
        return Path(named)
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "registry" / "variants.yaml").is_file() and (folder / "Snakefile").is_file():
            return folder
    return Path(__file__).resolve().parents[2]


class _UniqueKeys(yaml.CSafeLoader):
    """YAML reader that refuses a key written twice, where plain YAML silently keeps the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key}' stands twice", key_node.start_mark
                )
            seen.add(key)
        return dict(super().construct_mapping(node, deep=deep))


def read_yaml(path: Path) -> Merged:
    """Return the mapping in a YAML file; an absent, broken or empty file is an error that names it."""
    try:
        with path.open(encoding="utf-8") as stream:
            value = yaml.load(stream, Loader=_UniqueKeys)
    except FileNotFoundError:
        raise SembenchError(f"{_short(path)} does not exist; restore it from version control") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise SembenchError(f"{_short(path)}, line {line}: {error.problem}; mend the YAML there") from None
    except UnicodeDecodeError as error:
        raise SembenchError(f"{_short(path)} is not UTF-8 ({error.reason} at byte {error.start})") from None
    if not isinstance(value, dict):
        raise SembenchError(f"{_short(path)} must hold a mapping of names to entries, not {type(value).__name__}")
    return value


def _short(path: Path) -> str:
    return "/".join(path.parts[-2:]) if path.parent.name in {"registry", "tables", "figures"} else path.name


@dataclass(frozen=True)
class PaperValue:
    """One number printed in a paper."""

    paper: str
    table: str
    row: str
    column: str
    value: float
    note: str


@dataclass(frozen=True)
class Registry:
    """Everything known by name."""

    root: Path
    datasets: dict[str, Dataset]
    backbones: dict[str, Backbone]
    variants: dict[str, Merged]
    readouts: dict[str, Readout]
    suites: dict[str, Merged]
    tables: dict[str, Table]
    frames: dict[str, FrameTable]
    figures: dict[str, AnyFigure]
    scales: dict[str, Scale]
    stages: dict[str, Stage]
    analogy: Merged
    analogy_rules: str
    paper_values: tuple[PaperValue, ...]

    def variant(self, key: str) -> Variant:
        """Return a variant with its bases merged in (``extends``), or raise for an unknown one or a circle."""
        entry: Merged = {}
        for name in self.lineage(key):
            # A base may be abstract; what extends it is not, unless it says so.
            entry = merged(entry | {"abstract": False}, self.variants[name])
        entry.pop("extends", None)
        variant = parse(Variant, entry, f"registry/variants.yaml, variant '{key}'")
        parse(Recipe, variant.recipe, f"registry/variants.yaml, variant '{key}', recipe")
        return variant

    def lineage(self, key: str) -> tuple[str, ...]:
        """Return the names that a variant is made of: the base that extends nothing first, the variant itself last."""
        names: list[str] = []
        base: str | None = key
        while base:
            if base not in self.variants:
                raise unknown("variant", base, self.variants, "registry/variants.yaml")
            if base in names:
                raise SembenchError(f"registry/variants.yaml: '{key}' extends itself through {' -> '.join(names)}")
            names.append(base)
            base = self.variants[base].get("extends")
            if base is not None and not isinstance(base, str):
                raise SembenchError(f"registry/variants.yaml, variant '{names[-1]}': 'extends' must be one name")
        return tuple(reversed(names))

    def scale(self, name: str) -> Scale:
        """Return a scale by name, or raise."""
        if name not in self.scales:
            raise unknown("scale", name, self.scales, "registry/scales.yaml")
        return self.scales[name]


def _models(path: Path, model: type[Model]) -> dict[str, Model]:
    kind = path.stem.removesuffix("s")
    return {key: parse(model, value, f"{_short(path)}, {kind} '{key}'") for key, value in read_yaml(path).items()}


def _figures(folder: Path) -> dict[str, AnyFigure]:
    found: dict[str, AnyFigure] = {}
    for path in sorted(folder.glob("*.yaml")):
        entry = read_yaml(path)
        curves = entry.get("kind") == "curves"
        found[path.stem] = parse(CurveFigure, entry, _short(path)) if curves else parse(Figure, entry, _short(path))
    return found


def _paper_values(path: Path) -> tuple[PaperValue, ...]:
    columns = ["paper", "table", "row", "column", "value", "note"]
    with path.open(encoding="utf-8", newline="") as stream:
        reader = csv.DictReader(stream)
        if reader.fieldnames != columns:
            raise SembenchError(f"{_short(path)}: the header must be {','.join(columns)}")
        rows = []
        for number, line in enumerate(reader, start=2):
            try:
                rows.append(
                    PaperValue(
                        line["paper"], line["table"], line["row"], line["column"], float(line["value"]), line["note"]
                    )
                )
            except (TypeError, ValueError):
                raise SembenchError(f"{_short(path)}, line {number}: '{line['value']}' is not a number") from None
    return tuple(rows)


def _plain(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SembenchError(f"{_short(path)} does not exist; restore it from version control") from None


class _KeysOnly(Strict):
    """Checks that the names of raw entries are valid identifiers."""

    names: list[Name]


def _raw(path: Path) -> dict[str, Merged]:
    entries = read_yaml(path)
    parse(_KeysOnly, {"names": list(entries)}, f"{_short(path)}, names of entries")
    for key, value in entries.items():
        if not isinstance(value, dict):
            raise SembenchError(f"{_short(path)}: the entry '{key}' must be a mapping")
    return entries


@functools.cache
def load_registry(root: Path | None = None) -> Registry:
    """Read and check the whole registry below ``root``.

    Raises:
        SembenchError: a file is absent or broken, a key is unknown, a name refers to nothing.
    """
    folder = (root or project_root()) / "registry"
    tables = {path.stem: (_short(path), read_yaml(path)) for path in sorted((folder / "tables").glob("*.yaml"))}
    registry = Registry(
        root=folder.parent,
        datasets=_models(folder / "datasets.yaml", Dataset),
        backbones=_models(folder / "backbones.yaml", Backbone),
        variants=_raw(folder / "variants.yaml"),
        readouts=_models(folder / "readouts.yaml", Readout),
        suites=_raw(folder / "suites.yaml"),
        tables={key: parse(Table, raw, where) for key, (where, raw) in tables.items() if raw.get("kind") != "frame"},
        frames={
            key: parse(FrameTable, raw, where) for key, (where, raw) in tables.items() if raw.get("kind") == "frame"
        },
        figures=_figures(folder / "figures"),
        scales=_models(folder / "scales.yaml", Scale),
        stages=_models(folder / "stages.yaml", Stage),
        analogy=read_yaml(folder / "analogy.yaml"),
        # Content, not form: a comment in the filter's table makes no other data set.
        analogy_rules=json.dumps(
            [read_yaml(folder / "relations.yaml"), _plain(folder / "corrections.tsv")], sort_keys=True
        ),
        paper_values=_paper_values(folder / "paper_values.csv"),
    )
    _check_references(registry)
    return registry


def _need(kind: str, name: str | None, known: Mapping[str, Any], where: str) -> None:
    if name is not None and name not in known:
        raise SembenchError(f"{where}: {unknown(kind, name, known)}")


def _check_references(registry: Registry) -> None:
    """Raise for the first name in the registry that refers to nothing."""
    _check_encoders(registry)
    for key, raw in registry.suites.items():
        where = f"registry/suites.yaml, suite '{key}'"
        suite = parse(Suite, raw, where)
        _need("suite", suite.encoded_with, registry.suites, where)
        for name, task in suite.tasks.items():
            _need("data set", task.dataset, {**registry.datasets, **dict.fromkeys(DERIVED)}, f"{where}, task '{name}'")
        for name in suite.readouts:
            _need("read-out", name, registry.readouts, where)
    for key, table in registry.tables.items():
        _check_table(key, table, registry)
    for key, figure in registry.figures.items():
        for point in figure.points:
            _need("variant", point.variant, registry.variants, f"registry/figures/{key}.yaml, point '{point.label}'")
    for key, scale in registry.scales.items():
        _check_scale(f"registry/scales.yaml, scale '{key}'", scale, registry)


def _check_encoders(registry: Registry) -> None:
    for key, backbone in registry.backbones.items():
        where = f"registry/backbones.yaml, backbone '{key}'"
        _need("data set", backbone.dataset, registry.datasets, where)
        _need("read-out", backbone.readout, registry.readouts, where)
    for key in registry.variants:
        where = f"registry/variants.yaml, variant '{key}'"
        variant = registry.variant(key)
        _need("backbone", variant.backbone, registry.backbones, where)
        _need("data set", variant.data, {**registry.datasets, **dict.fromkeys(DERIVED)}, where)
        _need("read-out", variant.readout, registry.readouts, where)
        _check_objective(where, variant)
        _check_start(where, variant, registry)


# What each objective trains on: data sets made here, or (contrastive) text that is fetched.
TRAINS_ON = {"analogy": ("dsbats4cl", "dsbats4cl_held_out"), "defsent": ("dsbats_sn",)}


def _check_objective(where: str, variant: Variant) -> None:
    """Raise where the objective cannot train on the data, or an untouched encoder is told to start from a run."""
    objective = variant.recipe.get("objective", "contrastive")
    if objective == "none" and variant.start:
        raise SembenchError(f"{where}: an encoder that is not trained starts from nothing; drop 'start'")
    if objective == "none" or variant.data is None:
        return
    fitting = TRAINS_ON.get(objective, ())
    if (variant.data not in fitting) if fitting else (variant.data in DERIVED):
        told = " or ".join(fitting) or "a data set of sentences"
        raise SembenchError(f"{where}: objective {objective} does not train on {variant.data}; take {told}")


def _check_start(where: str, variant: Variant, registry: Registry) -> None:
    """Raise unless what a variant starts from is trained, on the same backbone, and not itself."""
    seen: list[str | None] = []
    while variant.start:
        _need("variant", variant.start, registry.variants, where)
        if variant.start in seen:
            raise SembenchError(f"{where}: starts from itself through '{variant.start}'; break the circle")
        seen.append(variant.start)
        start = registry.variant(variant.start)
        if start.abstract or start.recipe.get("objective") == "none":
            raise SembenchError(f"{where}: '{variant.start}' is not trained; start from a trained variant")
        if start.backbone != variant.backbone:
            raise SembenchError(
                f"{where}: '{variant.start}' has the backbone {start.backbone}, not {variant.backbone}; use the same"
            )
        variant = start


def _check_scale(where: str, scale: Scale, registry: Registry) -> None:
    for old, new in [*scale.substitutes.items(), *scale.fallbacks.items()]:
        known = registry.datasets if old in registry.datasets else registry.backbones
        for name in (old, new):
            _need("data set or backbone", name, known, f"{where}, substitutes")
    for name in scale.variants:
        _need("variant", name, registry.variants, f"{where}, variants")
    for name in scale.suites:
        _need("suite", name, registry.suites, f"{where}, suites")


def _check_table(key: str, table: Table, registry: Registry) -> None:
    listed = [row for group in table.groups for row in group.rows]
    rows = {row.key: row for row in listed}
    _once([row.key for row in listed], f"registry/tables/{key}.yaml, row")
    _once([column.key for column in table.columns], f"registry/tables/{key}.yaml, column")
    for row in listed:
        where = f"registry/tables/{key}.yaml, row '{row.key}'"
        _need("variant", row.variant, registry.variants, where)
        _need("read-out", row.readout, registry.readouts, where)
        _need("row", row.before, rows, where)
        if row.before == row.key:
            raise SembenchError(f"{where}: stands before itself; name the row that it is to be compared with")
        for name in row.scales:
            _need("scale", name, registry.scales, where)
    _check_columns(key, table, registry)
    for claim in table.claims:
        for name in (claim.better, claim.worse):
            _need("row", name, rows, f"registry/tables/{key}.yaml, claims")


def _once(names: list[str], what: str) -> None:
    if repeated := [name for name in names if names.count(name) > 1]:
        raise SembenchError(f"{what} '{repeated[0]}' stands twice; give each its own key")


def _check_columns(key: str, table: Table, registry: Registry) -> None:
    columns = {column.key: column for column in table.columns}
    for column in table.columns:
        where = f"registry/tables/{key}.yaml, column '{column.key}'"
        for name in [*column.mean_of, column.gain_of]:
            _need("column", name, columns, where)
        # One step at most: a mean of metrics, a gain in a metric or a mean. So there are no circles.
        if any(columns[name].metric is None for name in column.mean_of):
            raise SembenchError(f"{where}: mean_of must name columns with a metric of their own")
        if column.gain_of and columns[column.gain_of].gain_of:
            raise SembenchError(f"{where}: gain_of must not name a gain, which '{column.gain_of}' is")
        if column.metric:
            _need("suite", column.metric.suite, registry.suites, where)
