"""Reading the registry's YAML files into models, with errors that name file, key and the nearest valid name."""

from __future__ import annotations

import csv
import functools
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sembench.core.errors import SembenchError, shortened, unknown
from sembench.core.plugin import VIEWS, Chosen
from sembench.core.schema import Merged, Model, OwnName, Strict, merged, parse
from sembench.registry.models import (
    Backbone,
    Dataset,
    Family,
    Made,
    MetricUnit,
    Readout,
    Scale,
    Suite,
    Transform,
    Variant,
)

VALUE_COLUMNS = ["paper", "table", "row", "column", "value", "note"]


def project_root() -> Path:
    """Return the project's folder: ``SEMBENCH_ROOT``, else the nearest one here or above, else that of this file."""
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
            if not isinstance(key, str):
                # YAML 1.1 reads on, off, yes and no as true and false.
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key_node.value}' is not text to YAML; put it in quotes", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key}' is written twice", key_node.start_mark
                )
            seen.add(key)
        return dict(super().construct_mapping(node, deep=deep))

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        value = int(super().construct_yaml_int(node))
        if abs(value) >= 2**63:
            raise yaml.constructor.ConstructorError(
                None, None, f"the number {shortened(node.value, 20)} is too large", node.start_mark
            )
        return value


_UniqueKeys.add_constructor("tag:yaml.org,2002:int", _UniqueKeys.construct_yaml_int)


def read_yaml(path: Path) -> Merged:
    """Return the mapping in a YAML file; an absent, broken or empty file is an error that names it."""
    try:
        with path.open(encoding="utf-8") as stream:
            value = yaml.load(stream, Loader=_UniqueKeys)
    except FileNotFoundError:
        raise SembenchError(f"{_short(path)} does not exist; restore it from version control") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise SembenchError(f"{_short(path)}, line {line}: {error.problem}; correct the YAML there") from None
    except (UnicodeDecodeError, yaml.reader.ReaderError) as error:
        raise SembenchError(f"{_short(path)} is not plain UTF-8 text ({error.reason}); save it as UTF-8") from None
    except RecursionError:
        raise SembenchError(f"{_short(path)} is nested too deeply; correct the YAML there") from None
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError) as error:
        # What looks like a date, or is said to be a number, may be none (2020-02-30, !!int x);
        raise SembenchError(f"{_short(path)} has a value that YAML cannot read ({error}); put it in quotes") from None
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
class ViewEntry:
    """A table or a figure as the registry has it: one file below registry/tables or registry/figures.

    Attributes:
        key: name of the file, and of the target.
        folder: ``tables`` or ``figures``, in the registry and among the results.
        chosen: the view with its parameters, which are all other keys of the file.
    """

    key: str
    folder: str
    chosen: Chosen[Any]

    @property
    def paper(self) -> str:
        """The paper that it belongs to."""
        return str(getattr(self.chosen.config, "paper", ""))

    @property
    def by_name(self) -> list[str]:
        """Scales at which it is built only where a command names it."""
        return list(getattr(self.chosen.config, "by_name", []))

    @property
    def title(self) -> str:
        """Its heading."""
        return str(getattr(self.chosen.config, "title", self.key))


@dataclass(frozen=True)
class Registry:
    """Everything known by name.

    Variants are kept as they are written: ``variant`` merges the bases in, and ``sembench.plan.resolve`` also what a
    scale lays over them.
    """

    root: Path
    datasets: dict[str, Dataset]
    made: dict[str, Made]
    backbones: dict[str, Backbone]
    variants: dict[str, Merged]
    readouts: dict[str, Readout]
    transforms: dict[str, Transform]
    suites: dict[str, Suite]
    metrics: dict[str, MetricUnit]
    rowsets: dict[str, Any]
    views: dict[str, ViewEntry]
    scales: dict[str, Scale]
    paper_values: tuple[PaperValue, ...]

    def lineage(self, key: str) -> tuple[str, ...]:
        """Return the names that a variant is made of: the base that extends nothing first, the variant itself last.

        Raises:
            SembenchError: an unknown name, or a circle.
        """
        names: list[str] = []
        base: Any = key
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

    def base(self, key: str) -> str | None:
        """Return the nearest variant that another one extends and that is no mere base, or None where there is none."""
        names = reversed(self.lineage(key)[:-1])
        return next((name for name in names if not self.variants[name].get("abstract")), None)

    def variant(self, key: str) -> Variant:
        """Return a variant with its bases merged in (``extends``), whatever the scale.

        Raises:
            SembenchError: an unknown name, a circle, or a key that a variant does not have.
        """
        entry: Merged = {}
        for name in self.lineage(key):
            # A base may be abstract; what extends it is not, unless it says so.
            entry = merged(entry | {"abstract": False}, self.variants[name])
        entry.pop("extends", None)
        return parse(Variant, entry, f"registry/variants.yaml, variant '{key}'")

    @property
    def concrete(self) -> list[str]:
        """Names of the variants that are not only bases for others (``abstract``)."""
        return [key for key, entry in self.variants.items() if not entry.get("abstract")]

    @property
    def settings(self) -> tuple[str, ...]:
        """Keys of config.yaml that replace a parameter of a data set made here."""
        return tuple(dict.fromkeys(key for entry in self.made.values() for key in entry.settings.values()))

    @functools.cached_property
    def values_of(self) -> dict[str, dict[tuple[str, str], PaperValue]]:
        """Printed numbers: table, then (row, column)."""
        found: dict[str, dict[tuple[str, str], PaperValue]] = {}
        for value in self.paper_values:
            found.setdefault(value.table, {})[value.row, value.column] = value
        return found

    def scale(self, name: str) -> Scale:
        """Return a scale by name, or raise."""
        if name not in self.scales:
            raise unknown("scale", name, self.scales, "registry/scales.yaml")
        return self.scales[name]


def _models(path: Path, model: type[Model]) -> dict[str, Model]:
    kind = path.stem.replace("ies", "y").removesuffix("s")
    return {key: parse(model, value, f"{_short(path)}, {kind} '{key}'") for key, value in _raw(path).items()}


class _KeysOnly(Strict):
    """Checks that the names of raw entries are valid identifiers."""

    names: list[OwnName]


def _raw(path: Path) -> dict[str, Merged]:
    return _named(read_yaml(path), path)


def _named(entries: Merged, path: Path) -> dict[str, Merged]:
    parse(_KeysOnly, {"names": list(entries)}, f"{_short(path)}, names of entries")
    for key, value in entries.items():
        if not isinstance(value, dict):
            raise SembenchError(f"{_short(path)}: the entry '{key}' must be a mapping")
    return entries


def read_variants(folder: Path) -> dict[str, Merged]:
    """Return the entries of ``folder``/variants.yaml; one with braces in its name is one for each of families.yaml.

    Raises:
        SembenchError: a file is absent or broken, a word in braces is unknown, or two entries have one name.
    """
    path, families = folder / "variants.yaml", _models(folder / "families.yaml", Family)
    found: Merged = {}
    for written, entry in read_yaml(path).items():
        for name, member in _members(written, entry, families, f"{_short(path)}, entry '{written}'"):
            if name in found:
                raise SembenchError(f"{_short(path)}: '{name}' is there twice, once by '{written}'; rename one")
            found[name] = member
    return _named(found, path)


def _members(name: str, entry: Any, families: Mapping[str, Family], where: str) -> Iterator[tuple[str, Any]]:
    if "{" not in name:
        yield name, entry
        return
    for key, family in families.items():
        words = {"encoder": key, **family.model_dump()}
        yield _filled_in(name, words, where), _filled_in(entry, words, where)


def _filled_in(value: Any, words: Mapping[str, str], where: str) -> Any:
    """Return a value with each word in braces replaced, in all texts that it holds."""
    if isinstance(value, dict):
        return {key: _filled_in(each, words, where) for key, each in value.items()}
    if not isinstance(value, str):
        return value

    def word(match: re.Match[str]) -> str:
        if match[1] not in words:
            raise SembenchError(f"{where}: {unknown('word in braces', match[1], words, 'registry/families.yaml')}")
        return words[match[1]]

    return re.sub(r"\{(\w*)\}", word, value)


# Rules of the Snakefile, and how the names of those begin that are made for each entry; a view is a rule too.
TAKEN = {
    "all",
    "fetch",
    "tables",
    "figures",
    "simcse",
    "analogy",
    "beyond",
    "report",
    "train",
    "score",
    "collect_scores",
}
TAKEN_PREFIXES = ("fetch_", "make_", "shard_", "publish_", "build_backbone_")


def _views(registry: Path, rowsets: Mapping[str, Any]) -> dict[str, ViewEntry]:
    found: dict[str, ViewEntry] = {}
    for folder in ("tables", "figures"):
        for path in sorted((registry / folder).glob("*.yaml")):
            raw = read_yaml(path)
            where = _short(path)
            parse(_KeysOnly, {"names": [path.stem]}, f"{where}, name of the file")
            if path.stem in TAKEN or path.stem.startswith(TAKEN_PREFIXES) or path.stem in found:
                raise SembenchError(f"{where}: the name '{path.stem}' is taken; rename the file")
            default = {"kind": "scores"} if folder == "tables" else {}
            found[path.stem] = ViewEntry(
                path.stem, folder, VIEWS.parse({**default, **with_rows(raw, rowsets, where)}, where)
            )
    return found


def with_rows(raw: Merged, rowsets: Mapping[str, Any], where: str) -> Merged:
    """Return a table with the rows of the row sets that its groups name (``rows_of``)."""
    if not isinstance(raw.get("groups"), list):
        return raw
    return {**raw, "groups": [_filled(group, rowsets, where) for group in raw["groups"]]}


def _filled(group: Any, rowsets: Mapping[str, Any], where: str) -> Any:
    if not isinstance(group, dict) or "rows_of" not in group:
        return group
    name = str(group["rows_of"])
    if name not in rowsets:
        raise SembenchError(f"{where}: {unknown('row set', name, rowsets, 'registry/rowsets.yaml')}")
    rest = {key: value for key, value in group.items() if key != "rows_of"}
    more = rest.get("rows", [])
    if not isinstance(rowsets[name], list) or not isinstance(more, list):
        at = where if isinstance(rowsets[name], list) else f"registry/rowsets.yaml, row set '{name}'"
        raise SembenchError(f"{at}: the rows must be a list; write one row a line, with '- ' before it")
    return {**rest, "rows": [*rowsets[name], *more]}


def _paper_values(path: Path) -> tuple[PaperValue, ...]:
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream)
            if reader.fieldnames != VALUE_COLUMNS:
                raise SembenchError(f"{_short(path)}: the header must be {','.join(VALUE_COLUMNS)}")
            rows = [_paper_value(line, f"{_short(path)}, line {number}") for number, line in enumerate(reader, start=2)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SembenchError(f"{_short(path)} cannot be read ({error}); restore it from version control") from None
    _once([f"{value.table}, {value.row}, {value.column}" for value in rows], f"{_short(path)}, cell")
    return tuple(rows)


def _paper_value(line: dict[str, Any], where: str) -> PaperValue:
    if None in line or None in line.values():
        raise SembenchError(f"{where}: {len(VALUE_COLUMNS)} columns are needed; quote a note that holds a comma")
    try:
        value = float(line["value"])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise SembenchError(f"{where}: '{line['value']}' is not a number; write the printed one")
    return PaperValue(line["paper"], line["table"], line["row"], line["column"], value, line["note"])


def _once(names: list[str], what: str) -> None:
    if repeated := [name for name in names if names.count(name) > 1]:
        raise SembenchError(f"{what} '{repeated[0]}' is listed twice; keep one")


def read_registry(root: Path) -> Registry:
    """Read the whole registry below ``root``; names that refer to nothing are found by ``load_registry``.

    Raises:
        SembenchError: a file is absent or broken, or a key is unknown.
    """
    folder = root / "registry"
    rowsets = read_yaml(folder / "rowsets.yaml")
    return Registry(
        root=root,
        datasets=_models(folder / "datasets.yaml", Dataset),
        made=_models(folder / "made.yaml", Made),
        backbones=_models(folder / "backbones.yaml", Backbone),
        variants=read_variants(folder),
        readouts=_models(folder / "readouts.yaml", Readout),
        transforms=_models(folder / "transforms.yaml", Transform),
        suites=_models(folder / "suites.yaml", Suite),
        metrics=_models(folder / "metrics.yaml", MetricUnit),
        rowsets=rowsets,
        views=_views(folder, rowsets),
        scales=_models(folder / "scales.yaml", Scale),
        paper_values=_paper_values(folder / "paper_values.csv"),
    )
