"""Cells, tables, figures and the page: the real tables of the registry over a plan and scores made up here."""

from __future__ import annotations

import csv
import dataclasses
import functools
import html
import io
import itertools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt
from scipy.stats import spearmanr

from sembench.core.artifact import Artifact, seal
from sembench.core.errors import SembenchError
from sembench.core.files import write_json
from sembench.core.plugin import VIEWS
from sembench.evaluation.protocols.sts import Sts
from sembench.plan.layout import ScaleLayout
from sembench.plan.needs import Needs, ScoreKey
from sembench.registry.load import PaperValue, ViewEntry, read_variants, read_yaml, with_rows
from sembench.registry.models import MetricUnit, Where
from sembench.reporting import cells, compared, coordinates, drawing, page, render, tables, text
from sembench.reporting.views import _scores_config as grid_config
from sembench.reporting.views import _scores_grid as grid
from sembench.reporting.views import curves, recipes, scores
from sembench.results.aggregate import paired, paired_gain
from sembench.results.comparison import Part, compare
from tests.conftest import ROOT

PROJECT = Path(__file__).resolve().parents[2]
TABLE, FIGURE, STS_TABLE, CROSS = "simcse_table_5", "simcse_figure_3", "analogy_table_sts", "beyond_table_cross"
RECORD_COLUMNS = ["run", "variant", "seed", "readout", "suite", "task", "split", "subset", "aggregation", "metric", "value",
                  "n", "sample_hash", "protocol", "device", "precision", "seconds", "created"]  # fmt: skip

# ------------------------------------------------------------------------------------- a registry and a plan to test with

UNITS = dict.fromkeys(("alignment", "uniformity", "largest_share", "effective_rank", "average_cosine"), (1, 3))
METRICS = {
    name: MetricUnit(title=name, times=UNITS.get(name, (100, 2))[0], digits=UNITS.get(name, (100, 2))[1])
    for name in ("spearman", "pearson", "accuracy", "f1", "majority", "low", "high", "same_image", *UNITS)
}
STS = {name: {"test": ["a", "b"]} for name in ("sts12", "sts13", "sts14", "sts15", "sts16")}
SUITES: dict[str, dict[str, Any]] = {
    "sts": {**STS, "stsb": {"dev": ["dev"], "test": ["test"]}, "sickr": {"test": ["test_annotated"]}},
    "regressor": {name: {"train": [], "dev": [], "test": []} for name in ("stsb", "sickr")},
    "geometry": {"stsb": {"pdata": ["dev", "test"]}},
    "spectrum": {"stsb": {"pdata": ["dev", "test"]}},
    "retrieval": {"flickr30k": {"captions": []}},
    "srsd": {"srsd": {"leak_free": [], "paper_like": []}, "analogy_choice": {"test": []}},
    "transfer": {name: {"dev": [], "test": []} for name in ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")},
}
SUITES["transfer_fast"] = SUITES["transfer"]
GIVEN = {
    "sts": (("spearman", "pearson"), (), ("all", "mean", "wmean", "subset")),
    "regressor": (("spearman", "pearson"), (), ("all",)),
    "geometry": (("alignment", "uniformity"), (), ("all",)),
    "spectrum": (("largest_share", "effective_rank", "average_cosine"), (), ("all",)),
    "retrieval": (("same_image",), (), ("all",)),
    "srsd": (
        ("accuracy", "low", "high", "majority"),
        ("all", "other_relation", "exchanged", "held_out", "diff"),
        ("all",),
    ),
    "transfer": (("accuracy", "f1", "majority"), (), ("all",)),
}
GIVEN["transfer_fast"] = GIVEN["transfer"]
READOUTS = {
    name: SimpleNamespace(title=title, summary=f"what {name} is")
    for name, title in {
        "cls": "[CLS]", "cls_mlp": "[CLS] w/ MLP", "pooler": "pooler", "mean": "mean", "last2": "last two",
        "first_last": "first-last", "embed_last": "embedding-last",
    }.items()
}  # fmt: skip
TRANSFORMS = {
    name: SimpleNamespace(title=f"whitening ({on})", summary="whitened")
    for name, on in (("whitening_nli", "nli_sentences"), ("whitening_task", "task"))
}
LAPTOP = {"distilbert", "minilm", "glove_6b_50d", "bert_tiny", "use_multilingual"}
NOTE = "Small scale: not comparable with the papers."


def tasks_of(suite: str, _: Any) -> dict[str, Any]:
    """Return the tasks of a suite as the registry does, with a protocol of which only names are known."""
    metrics, subsets, aggregations = GIVEN[suite]
    statistics = Sts.statistics if suite == "sts" else dict
    plugin = SimpleNamespace(metrics=metrics, subsets=subsets, aggregations=aggregations, statistics=statistics)
    return {
        name: SimpleNamespace(data=name, protocol=SimpleNamespace(plugin=plugin, config=SimpleNamespace(splits=splits)))
        for name, splits in SUITES[suite].items()
    }


@pytest.fixture(autouse=True)
def _tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinates, "tasks_of", tasks_of)
    objective = SimpleNamespace(Config=SimpleNamespace(model_fields={"temperature": None, "head": None}))
    monkeypatch.setattr(recipes, "OBJECTIVES", SimpleNamespace(modules=["contrastive"], get=lambda _: objective))


class FakeRegistry:
    """The tables, figures, row sets and paper values of a project's folder; all else is made up."""

    def __init__(self, root: Path) -> None:
        folder = root / "registry"
        self.variants: dict[str, Any] = read_variants(folder)
        names = [
            f"sup_simcse_{name}" for name in ("bert_base", "bert_large", "roberta_base", "roberta_large", "distilbert")
        ]
        for name in (*names, "sbert_softmax_distilbert"):
            self.variants.setdefault(name, {})
        self.readouts, self.transforms, self.metrics, self.suites = READOUTS, TRANSFORMS, METRICS, SUITES
        self.scales = {
            name: SimpleNamespace(title="a title", note=NOTE if name != "full" else "")
            for name in ("smoke", "demo", "small", "full")
        }
        with (folder / "paper_values.csv").open(encoding="utf-8", newline="") as stream:
            lines = [{**line, "value": float(line["value"])} for line in csv.DictReader(stream)]
        self.paper_values = tuple(PaperValue(**line) for line in lines)
        rowsets = read_yaml(folder / "rowsets.yaml")
        self.views: dict[str, ViewEntry] = {}
        for kind in ("tables", "figures"):
            for path in sorted((folder / kind).glob("*.yaml")):
                raw = with_rows(read_yaml(path), rowsets, path.name)
                default = {"kind": "scores"} if kind == "tables" else {}
                self.views[path.stem] = ViewEntry(path.stem, kind, VIEWS.parse({**default, **raw}, path.name))
        entry = SimpleNamespace(title="A data set", licence="free", cite="Somebody 2020", package=None)
        self.datasets = dict.fromkeys(("sts_benchmark", "vocabulary"), entry)
        self.made = dict.fromkeys(("dsbats_sn", "dsbats4cl", "dsbats_open", "sentences"), entry)
        self.backbones = {"some_backbone": entry}

    @property
    def values_of(self) -> dict[str, dict[tuple[str, str], PaperValue]]:
        found: dict[str, dict[tuple[str, str], PaperValue]] = {}
        for value in self.paper_values:
            found.setdefault(value.table, {})[value.row, value.column] = value
        return found


@dataclasses.dataclass(frozen=True)
class FakeRun:
    id: str
    variant: str
    seed: int
    artifact: Artifact
    backbone: str
    training: Any = None
    data: Artifact | None = None
    start: Any = None

    @property
    def trained(self) -> bool:
        return self.training is not None


@dataclasses.dataclass(frozen=True)
class FakeCell:
    where: Where
    readout: str
    runs: tuple[FakeRun, ...]
    missing: str

    @property
    def keys(self) -> tuple[ScoreKey, ...]:
        key = (self.readout, str(self.where.suite), str(self.where.task))
        return () if self.missing else tuple(ScoreKey(run.id, *key) for run in self.runs)


class FakePlan:
    """A plan in which a variant is trained if its name says so, and in which ``lacking`` variants and tasks are missing."""

    def __init__(self, scale: str, root: Path, seeds: list[int], papers: Iterable[str] = ("simcse",)) -> None:
        self.root, self.name, self.seeds, self.papers, self.partial = root, scale, seeds, list(papers), False
        self.registry = FakeRegistry(root)
        self.scale, self.layout = self.registry.scales[scale], ScaleLayout(scale)
        self.lacking: dict[str, str] = {}
        self.records: dict[str, Any] = {}

    def shown(self, scales: list[str]) -> bool:
        return not scales or self.name in scales

    def used(self, name: str) -> str:
        return name

    def artifact(
        self, kind: Any, name: str, folder: str, inputs: tuple[Artifact, ...] = (), files: Any = ("a.txt",)
    ) -> Artifact:
        return Artifact(kind, name, {}, inputs, Path(folder) / f"{name}.0123abcd", tuple(files))

    def data(self, name: str) -> Artifact:
        kind, folder = ("made", "made") if name in self.registry.made else ("dataset", "sets")
        file = {"dsbats_sn": "sizes.csv", "sts_benchmark": "dev.csv"}.get(name, "a.txt")
        return self.artifact(kind, name, f"results/data/{folder}", files=(file,))

    @functools.cache  # noqa: B019
    def _run(self, variant: str, seed: int) -> FakeRun:
        vocabulary = self.artifact("dataset", "vocabulary", "results/data/sets")
        backbone = self.artifact("backbone", "some_backbone", "results/data/backbones", (vocabulary,))
        if not re.search("simcse|analogy_|defsent|softmax", variant):
            return FakeRun(f"{variant}.s0.0123abcd", variant, 0, backbone, "some_backbone")
        data = self.data("sentences")
        folder = f"results/{self.name}/runs"
        made = self.artifact("run", f"{variant}.s{seed}", folder, (backbone, data), ("run.json",))
        objective = {"kind": "contrastive", "temperature": 0.05, "head": "mlp"}
        recipe = {"batch_size": 64, "learning_rate": 3e-4, "epochs": 1, "max_length": 32, "objective": objective}
        training = SimpleNamespace(params=recipe, values=recipe)
        start = self._run("unsup_simcse_distilbert", seed) if variant == "analogy_on_simcse_distilbert" else None
        return FakeRun(made.folder.name, variant, seed, made, "some_backbone", training, data, start)

    def runs_of(self, variant: str) -> tuple[FakeRun, ...]:
        return tuple({run.id: run for run in (self._run(variant, seed) for seed in self.seeds)}.values())

    def run(self, run_id: str) -> FakeRun:
        variant, seed, _ = run_id.split(".")
        return self._run(variant, int(seed[1:]))

    def resolved(self, variant: str) -> Any:
        return SimpleNamespace(variant=SimpleNamespace(summary=f"what {variant} is"))

    def missing(self, variant: str) -> str:
        at_full = self.name == "full"
        small = any(name in variant for name in LAPTOP)
        return self.lacking.get(variant, "" if small != at_full else f"encoder of {variant}: needs the hub")

    def cell(self, where: Where) -> FakeCell:
        entry = self.registry.variants[str(where.variant)]
        own = "cls" if "simcse" in str(where.variant) else "mean"
        readout = where.readout or entry.get("readout") or own
        missing = self.missing(str(where.variant)) or self.lacking.get(f"{where.suite}/{where.task}", "")
        if readout.startswith("pooler") and "distilbert" in str(where.variant):
            missing = f"read-out pooler is not offered by {where.variant}; it has cls, mean"
        if not missing and str(where.split) not in SUITES[str(where.suite)][str(where.task)]:
            missing = f"split {where.split} of {where.task} is not scored at scale {self.name}"
        return FakeCell(where, readout, self.runs_of(str(where.variant)), missing)

    def task(self, suite: str, task: str) -> Any:
        return tasks_of(suite, None)[task]

    def score(self, key: ScoreKey) -> Artifact:
        stem = f"{key.suite}.{key.task}.0123abcd"
        inputs = (self.run(key.run).artifact, self.data("sts_benchmark"))
        files = (f"{stem}.parquet", f"{stem}.predictions.parquet")
        return Artifact("scores", stem, {}, inputs, self.layout.scores(key.run, key.readout), files, f"{stem}.json")

    def view(self, key: str) -> Any:
        entry = self.registry.views[key]
        outputs = tuple(self.layout.view(entry.folder, key, suffix) for suffix in entry.chosen.plugin.suffixes)
        return SimpleNamespace(entry=entry, needs=entry.chosen.plugin.needs(entry.chosen.config, self), outputs=outputs)

    def chosen_views(self) -> dict[str, Any]:
        return {key: self.view(key) for key, entry in self.registry.views.items() if entry.paper in self.papers}

    def artifacts(self, needs: Needs) -> list[Artifact]:
        return [self.score(key) for key in needs.scores] + [self.run(run).artifact for run in needs.runs]

    def ancestors(self, artifacts: Iterable[Artifact]) -> Iterator[Artifact]:
        seen: set[Path] = set()
        waiting = list(artifacts)
        while waiting:
            each = waiting.pop()
            if each.record not in seen:
                seen.add(each.record)
                yield each
                waiting += each.inputs


def project(folder: Path) -> Path:
    """Copy what reporting reads of the project to a folder of its own."""
    for name in ("registry/tables", "registry/figures", "report"):
        shutil.copytree(PROJECT / name, folder / name, dirs_exist_ok=True)
    for name in ("variants.yaml", "families.yaml", "rowsets.yaml", "paper_values.csv"):
        shutil.copy(PROJECT / "registry" / name, folder / "registry" / name)
    return folder


@functools.cache
def registry() -> FakeRegistry:
    return FakeRegistry(PROJECT)


def frame(lines: Iterable[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(list(lines), columns=RECORD_COLUMNS)


def record(plan: FakePlan, run: str, readout: str, **given: Any) -> dict[str, Any]:
    spec = plan.run(run)
    line = {
        "run": run, "variant": spec.variant, "seed": spec.seed, "readout": readout, "suite": "sts", "task": "stsb",
        "subset": "", "split": "test", "aggregation": "all", "metric": "spearman", "value": 0.5, "n": 1379,
        "sample_hash": "a1b2c3d4e5f60718", "protocol": 1, "device": "cpu", "precision": "fp32",
        "seconds": 3.5, "created": "2025-01-02T03:04:05+00:00",
    }  # fmt: skip
    return line | given


def scored(plan: FakePlan, values: dict[tuple[str, str], list[float]], **given: Any) -> list[dict[str, Any]]:
    """Return records of variants under read-outs, one value a seed."""
    return [
        record(plan, run.id, readout, value=value, **given)
        for (variant, readout), of_seeds in values.items()
        for run, value in zip(plan.runs_of(variant), of_seeds, strict=False)
    ]


def geometry(plan: FakePlan, points: dict[tuple[str, str], tuple[float, float]]) -> list[dict[str, Any]]:
    place = {"suite": "geometry", "split": "pdata", "sample_hash": "0f" * 8}
    return [
        record(plan, run.id, readout, metric=metric, value=value, n=n, **place)
        for (variant, readout), (uniformity, alignment) in points.items()
        for run in plan.runs_of(variant)
        for metric, value, n in (("uniformity", uniformity, 2900), ("alignment", alignment, 338))
    ]


STSB = {
    ("distilbert", "cls"): [0.29],
    ("distilbert", "first_last"): [0.549],
    ("unsup_simcse_distilbert", "cls"): [0.53, 0.54, 0.55],
    ("unsup_simcse_distilbert", "first_last"): [0.5, 0.51, 0.52],
    ("minilm", "mean"): [0.8201],
}
POINTS = {
    ("distilbert", "cls"): (-0.55, 0.14),
    ("unsup_simcse_distilbert", "cls"): (-1.9, 0.3),
    ("minilm", "mean"): (-3.4, 0.21),
}


@pytest.fixture
def small(tmp_path: Path) -> FakePlan:
    plan = FakePlan("small", project(tmp_path), [42, 43, 44])
    plan.lacking |= {f"sts/{task}": f"data set {task}: needs a mirror folder" for task in STS}
    return plan


@pytest.fixture
def full(tmp_path: Path) -> FakePlan:
    return FakePlan("full", project(tmp_path), [42, 43, 44])


def scores_of(plan: FakePlan) -> pd.DataFrame:
    dev = scored(plan, STSB, split="dev", sample_hash="bb" * 8)
    return frame([*scored(plan, STSB), *dev, *geometry(plan, POINTS)])


def view(plan: FakePlan, key: str, given: pd.DataFrame | None = None) -> Any:
    return render.view_of(plan, key, frame([]) if given is None else given)  # type: ignore[arg-type]


def built(plan: FakePlan, key: str = TABLE, given: pd.DataFrame | None = None) -> list[cells.Cell]:
    found: list[cells.Cell] = view(plan, key, given).cells
    return found


def cell_of(found: Iterable[cells.Cell], row: str, column: str) -> cells.Cell:
    return next(cell for cell in found if (cell.row, cell.column) == (row, column))


def rewritten(plan: FakePlan, key: str, old: str, new: str, folder: str = "tables") -> FakePlan:
    """Change the text of a table and read the registry again."""
    path = plan.root / "registry" / folder / f"{key}.yaml"
    content = path.read_text(encoding="utf-8")
    assert old in content
    path.write_text(content.replace(old, new), encoding="utf-8")
    again = FakePlan(plan.name, plan.root, plan.seeds, plan.papers)
    again.lacking = plan.lacking
    return again


# --------------------------------------------------------------------------------------------------------- coordinates


def test_a_later_part_of_the_coordinates_wins():
    defaults, row = Where(suite="sts", split="test"), grid_config.Row(key="r", label="R", variant="v", split="dev")
    column = grid_config.Column(key="c", label="C", task="stsb", split="test", metric="spearman")
    expected = {"suite": "sts", "variant": "v", "task": "stsb", "metric": "spearman"}
    assert coordinates.merged_where(defaults, row) == Where(suite="sts", split="dev", variant="v")
    assert coordinates.merged_where(defaults, row, column) == Where(**expected, split="test")


def table(**given: Any) -> grid_config.ScoresConfig:
    """Return a table of which only the named parts matter."""
    usual: dict[str, Any] = {
        "title": "T",
        "paper": "simcse",
        "defaults": {"suite": "sts", "task": "stsb", "metric": "spearman"},
        "columns": [{"key": "c", "label": "C"}],
        "groups": [{"heading": "H", "rows": [{"key": "r", "label": "R", "variant": "distilbert"}]}],
    }
    parsed = VIEWS.parse({"kind": "scores", **usual, **given}, "registry/tables/t.yaml").config
    assert isinstance(parsed, grid_config.ScoresConfig)
    return parsed


def test_a_column_can_give_the_variant_and_a_row_the_read_out():
    config = table(
        columns=[{"key": "a", "label": "A", "variant": "distilbert"}, {"key": "b", "label": "B", "variant": "minilm"}],
        groups=[
            {
                "heading": "H",
                "rows": [{"key": "r", "label": "R", "readout": "mean", "cells": {"b": {"readout": "cls"}}}],
            }
        ],
    )
    ((_, row),) = grid_config.rows_of(config)
    first, second = (grid_config.coordinates_of(config, row, column) for column in config.columns)
    assert (first.variant, first.readout, first.split, first.subset, first.aggregation) == (
        "distilbert",
        "mean",
        "test",
        "",
        "all",
    )
    assert (second.variant, second.readout) == ("minilm", "cls")


def test_rows_of_a_row_set_keep_their_order_and_others_follow_the_row_they_name():
    rows = [{"key": key, "label": key, "variant": "distilbert"} for key in ("one", "two", "three")]
    raw = {"groups": [{"heading": "H", "rows_of": "some", "rows": [{"key": "new", "label": "N", "after": "one"}]}]}
    groups = with_rows(raw, {"some": rows}, "t.yaml")["groups"]
    assert [row.key for _, row in grid_config.rows_of(table(groups=groups))] == ["one", "new", "two", "three"]


def test_a_cell_is_missing_by_its_row_its_column_or_its_own_word():
    config = table(
        columns=[{"key": "a", "label": "A", "missing": "not built yet"}, {"key": "b", "label": "B"}],
        groups=[
            {
                "heading": "H",
                "rows": [
                    {"key": "r", "label": "R", "missing": "no such row", "cells": {"b": {"variant": "minilm"}}},
                    {"key": "s", "label": "S", "variant": "minilm", "cells": {"b": {"missing": "no such cell"}}},
                ],
            }
        ],
    )
    (_, first), (_, second) = grid_config.rows_of(config)
    a, b = config.columns
    reasons = [grid_config.absent(config, row, column) for row in (first, second) for column in (a, b)]
    assert reasons == ["no such row", "", "not built yet", "no such cell"]


def test_a_column_is_another_one_on_another_encoder():
    """Coordinates, overrides and reasons of the other column, the variant's name changed; its own word comes last."""
    config = table(
        columns=[
            {"key": "a", "label": "A", "readout": "cls"},
            {"key": "b", "label": "B", "same_as": "a", "replace": {"bert_base": "distilbert"}},
        ],
        groups=[
            {
                "heading": "H",
                "rows": [
                    {"key": "r", "label": "R", "variant": "pairs_bert_base_qqp"},
                    {"key": "s", "label": "S", "cells": {"a": {"variant": "bert_base", "readout": "mean"}}},
                    {"key": "t", "label": "T", "variant": "bert_base", "cells": {"b": {"variant": "minilm"}}},
                    {"key": "u", "label": "U", "missing": "not here"},
                    {"key": "v", "label": "V", "variant": "bert_base", "cells": {"b": {"missing": "not on this"}}},
                ],
            }
        ],
    )
    rows, b = [row for _, row in grid_config.rows_of(config)], config.columns[1]
    places = [grid_config.coordinates_of(config, row, b) for row in rows]
    assert [(place.variant, place.readout) for place in places[:3]] == [
        ("pairs_distilbert_qqp", "cls"),
        ("distilbert", "mean"),
        ("minilm", "cls"),
    ]
    assert {place.task for place in places} == {"stsb"}
    assert [grid_config.absent(config, row, b) for row in rows] == ["", "", "", "not here", "not on this"]
    scores.Scores.check(config, registry(), "t.yaml", "t")  # type: ignore[arg-type]


def test_a_view_needs_the_scores_of_its_cells_and_of_what_these_are_made_from(small: FakePlan):
    small.lacking["minilm"] = "not here"
    needs = small.view(CROSS).needs
    assert {key.run.split(".")[0] for key in needs.scores} >= {"distilbert", "unsup_simcse_distilbert"}
    assert {(key.suite, key.task) for key in needs.scores} == {
        ("sts", "stsb"), ("sts", "sickr"), ("srsd", "srsd"), ("srsd", "analogy_choice")
    }  # fmt: skip
    assert not [key for key in small.view(TABLE).needs.scores if key.run.startswith("minilm") or key.task in STS]
    assert (
        ScoreKey("distilbert.s0.0123abcd", "first_last.whitening_nli", "sts", "stsb") in small.view(TABLE).needs.scores
    )


def test_a_figure_needs_the_scores_of_its_colour_as_well(small: FakePlan):
    """Alignment and uniformity are of one suite, the colour of another."""
    assert {(key.suite, key.task) for key in small.view(FIGURE).needs.scores} == {("geometry", "stsb"), ("sts", "stsb")}


# -------------------------------------------------------------------------------------------------------------- cells


def test_there_is_one_cell_for_each_row_and_column_shown(small: FakePlan, full: FakePlan):
    for plan, columns in ((small, 9), (full, 8)):
        found = built(plan)
        rows = [row.key for _, row in grid.Grid(plan.registry.views[TABLE].chosen.config, plan).rows]  # type: ignore[arg-type]
        assert len(found) == len(rows) * columns
        assert [cell.row for cell in found[::columns]] == rows


def test_a_cell_is_the_mean_over_seeds_in_the_metrics_units(small: FakePlan):
    cell = cell_of(built(small, TABLE, scores_of(small)), "unsup_distilbert_cls", "stsb")
    assert cell.status == "measured"
    assert cell.value == pytest.approx(54.0)
    assert cell.sd == pytest.approx(1.0)  # 53, 54, 55
    assert (cell.n_seeds, cell.n, cell.sample_hash, cell.digits) == (3, 1379, "a1b2c3d4e5f60718", 2)
    assert cell.runs == tuple(run.id for run in small.runs_of("unsup_simcse_distilbert"))
    assert (cell.paper_value, cell.delta, cell.verdict, cell.reason) == (None, None, "", "")


def test_unit_and_digits_are_those_of_the_metric():
    plan = FakePlan("small", PROJECT, [1])
    place = {"suite": "geometry", "task": "stsb", "split": "pdata", "metric": "alignment"}
    config = table(columns=[{"key": "a", "label": "A", **place}, {"key": "b", "label": "B"}])
    lines = geometry(plan, {("distilbert", "mean"): (-0.5512, 0.1436)}) + scored(plan, {("distilbert", "mean"): [0.29]})
    first, second = scores.Scores(config, plan, frame(lines), "t").cells  # type: ignore[arg-type]
    assert (first.value, tables.ours(first)) == (0.1436, "0.144")
    assert (second.value, tables.ours(second)) == (pytest.approx(29.0), "29.00")


def test_the_difference_to_a_paper_and_its_source(small: FakePlan):
    cell = cell_of(built(small, TABLE, scores_of(small)), "minilm", "stsb")
    assert (cell.value, cell.paper_value) == (pytest.approx(82.01), 82.03)
    assert cell.delta == pytest.approx(-0.02)
    assert (cell.verdict, cell.paper, cell.note) == ("matches", "mteb", "published in the MTEB paper; raw text")
    assert (cell.sd, cell.n_seeds) == (None, 1)


def all_columns(plan: FakePlan, variant: str, readout: str, runs: list[list[float]]) -> list[dict[str, Any]]:
    tasks = ["sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr"]
    return [
        record(plan, run.id, readout, task=task, value=value, sample_hash=task)
        for run, values in zip(plan.runs_of(variant), runs, strict=False)
        for task, value in zip(tasks, values, strict=True)
    ]


def test_the_average_is_of_rounded_columns_run_by_run(full: FakePlan):
    # Six columns of 70.004 round to 70.00 and one of 70.00: the mean of the rounded is 70, the rounded mean is not 70.
    lines = all_columns(full, "bert_base", "embed_last", [[0.70004] * 6 + [0.7]])
    cell = cell_of(built(full, TABLE, frame(lines)), "bert_base_first_last", "avg")
    assert cell.value == 70.0
    assert round((6 * 70.004 + 70) / 7, 4) != 70.0
    assert cell.n == 7 * 1379
    assert cell.paper_value == 56.70
    assert cell.delta == pytest.approx(13.30)
    assert cell.verdict == "above paper"


def test_the_average_over_seeds_is_the_mean_of_the_averages(full: FakePlan):
    # Seed averages 76, 77, 78. Paper 76.25: off by 0.75, within the tolerance of 1.
    lines = all_columns(full, "unsup_simcse_bert_base", "cls", [[0.76] * 7, [0.77] * 7, [0.78] * 7])
    cell = cell_of(built(full, TABLE, frame(lines)), "unsup_simcse_bert_base", "avg")
    assert (cell.value, cell.sd, cell.n_seeds) == (pytest.approx(77.0), pytest.approx(1.0), 3)
    assert cell.values == (pytest.approx(76.0), pytest.approx(77.0), pytest.approx(78.0))
    assert cell.verdict == "matches"


def poolings(plan: FakePlan) -> list[dict[str, Any]]:
    """Return STS of BERT before and after, as the analogy paper's table has it: 20 and 61, 63 by [CLS]; 50 by mean."""
    return [
        *all_columns(plan, "bert_base", "cls", [[0.20] * 7]),
        *all_columns(plan, "bert_base", "mean", [[0.50] * 7]),
        *all_columns(plan, "analogy_bert", "cls", [[0.61] * 7, [0.63] * 7]),
    ]


@pytest.fixture
def both(tmp_path: Path) -> FakePlan:
    return FakePlan("full", project(tmp_path), [1, 2], ["analogy", "beyond"])


def test_a_gain_is_what_training_added(both: FakePlan):
    found = built(both, STS_TABLE, frame(poolings(both)))
    gain = cell_of(found, "bert_cls_tuned", "gain")
    # (61 + 63) / 2 - 20, and the spread of 41 and 43.
    assert (gain.value, gain.n_seeds) == (pytest.approx(42.0), 2)
    assert gain.sd == pytest.approx(2**0.5)
    assert (gain.paper_value, gain.delta) == (43.6, pytest.approx(-1.6))
    assert "62.52 - 18.63 = 43.89" in gain.note
    assert cell_of(found, "bert_cls", "gain").reason == "a gain needs an encoder before it, and this is the first"
    # Measured before, not after: no gain, but a failure to look into.
    assert cell_of(found, "bert_mean_tuned", "gain").status == "failed"
    assert cell_of(found, "roberta_cls_tuned", "gain").reason == "no value of RoBERTa"


def test_a_gain_between_trained_rows_is_paired_by_seed(both: FakePlan):
    before, after = ("unsup_simcse_bert_base", "cls"), ("analogy_on_simcse_bert", "cls")
    # Each seed gains exactly 2.00, however far apart the seeds are.
    gain = cell_of(built(both, CROSS, frame(scored(both, {before: [0.5, 0.6], after: [0.52, 0.62]}))),
                   "bert_simcse_analogy", "gain_stsb")  # fmt: skip
    assert (gain.value, gain.sd, gain.n_seeds) == (pytest.approx(2.0), pytest.approx(0.0, abs=1e-9), 2)
    # Where the first seed failed before, only the second has a gain; the mean of what is there would be 1.00.
    lines = [line for line in scored(both, {before: [0.5, 0.6], after: [0.6, 0.62]}) if line["value"] != 0.5]
    partly = cell_of(built(both, CROSS, frame(lines)), "bert_simcse_analogy", "gain_stsb")
    assert (partly.value, partly.n_seeds, partly.reason) == (pytest.approx(2.0), 1, "1 of 2 seeds failed")


def test_pairing_by_seed():
    seeds = {"a1": 1, "a2": 2, "b2": 2, "b3": 3, "u": None}
    assert paired_gain({"a1": 5.0, "a2": 7.0}, {"b2": 4.0, "b3": 9.0}, seeds) == {"a2": 3.0}
    assert paired_gain({"a1": 5.0, "a2": 7.0}, {"u": 4.0}, seeds) == {"a1": 1.0, "a2": 3.0}
    assert paired([{"u": 1.0}, {"a1": 2.0, "a2": 3.0}], seeds) == {"a1": (1.0, 2.0), "a2": (1.0, 3.0)}
    assert paired([{"u": 1.0}, {"u": 2.0}], seeds) == {"u": (1.0, 2.0)}
    assert paired([{"a1": 1.0}, {"b2": 2.0}], seeds) == {}


def test_the_row_nearest_to_a_printed_number_is_named(both: FakePlan):
    shown = tables.render_markdown(view(both, STS_TABLE, frame(poolings(both))).printed())
    assert "Nearest to the printed 18.63 (Avg.), and so the paper-like setting: BERT under cls, 20.00" in shown
    assert "Nearest to the printed 62.52" not in shown  # only one row was measured, which is no choice


def test_a_lost_number_says_so(both: FakePlan):
    lost = both.registry.views["analogy_table_mrpc"].chosen.config.lost  # type: ignore[attr-defined]
    assert {(cell.paper_value, cell.note) for cell in built(both, "analogy_table_mrpc")} == {(None, lost)}
    for key, shown in (("analogy_table_mrpc", "keeps no number of it"), (STS_TABLE, "one average before and after")):
        assert shown in view(both, key).render()["html"]


def test_an_average_names_the_parts_that_are_missing(small: FakePlan):
    cell = cell_of(built(small, TABLE, scores_of(small)), "minilm", "avg")
    assert (cell.status, cell.value, cell.runs) == ("missing", None, ())
    assert cell.reason.endswith("STS12, STS13, STS14, STS15, STS16")


@pytest.mark.parametrize(
    ("delta", "sd", "expected"),
    [
        (None, None, ""),
        (1.0, None, "matches"),
        (1.004, None, "matches"),  # prints as +1.00
        (-1.0, 0.1, "matches"),
        (1.01, None, "above paper"),
        (-1.01, None, "below paper"),
        (1.9, 1.0, "within seed spread"),
        (-2.0, 1.0, "within seed spread"),
        (-2.01, 1.0, "below paper"),
    ],
)
def test_verdicts(delta: float | None, sd: float | None, expected: str):
    assert cells.verdict(delta, sd, 2, 1.0) == expected


def test_missing_rows_tasks_splits_and_readouts_tell_why(small: FakePlan):
    plan = rewritten(small, TABLE, "variant: distilbert, readout: cls", "variant: distilbert, readout: pooler")
    found = built(plan, TABLE, scores_of(plan))
    flow = cell_of(found, "bert_flow", "stsb")
    assert (flow.status, flow.reason, flow.paper_value) == ("missing", "normalising flows are not built yet", 68.66)
    task = cell_of(found, "minilm", "sts12")
    assert (task.status, task.reason) == ("missing", "data set sts12: needs a mirror folder")
    # What an encoder does not offer is missing and not failed.
    pooler = cell_of(found, "distilbert_cls", "stsb")
    assert (pooler.status, pooler.reason) == (
        "missing",
        "read-out pooler is not offered by distilbert; it has cls, mean",
    )


def test_failed_runs_and_failed_seeds(small: FakePlan):
    lines = scored(small, {("unsup_simcse_distilbert", "cls"): [0.5, 0.6]})
    found = built(small, TABLE, frame(lines))
    partly = cell_of(found, "unsup_distilbert_cls", "stsb")
    assert (partly.status, partly.n_seeds, partly.reason) == ("measured", 2, "1 of 3 seeds failed")
    assert partly.value == pytest.approx(55.0)
    whole = cell_of(found, "unsup_distilbert_first_last", "stsb")
    assert (whole.status, whole.value, whole.n_seeds, whole.reason) == ("failed", None, 0, "3 of 3 seeds failed")
    assert whole.runs == tuple(run.id for run in small.runs_of("unsup_simcse_distilbert_first_last"))
    single = cell_of(found, "minilm", "stsb")
    assert (single.status, single.reason) == ("failed", "the run failed: it is planned but has no score")


def test_cells_from_different_data_are_refused(small: FakePlan):
    lines = scored(small, STSB)
    lines[-1]["sample_hash"] = "ffff"
    with pytest.raises(SembenchError, match="are from different data"):
        built(small, TABLE, frame(lines))


# ---------------------------------------------------------------------------------------------------------- claims

CLS, DEFAULT, FIRST_LAST = ("unsup_simcse_distilbert", "cls"), ("distilbert", "cls"), ("distilbert", "first_last")
TUNED = ("unsup_simcse_distilbert", "first_last")


def predictions(noise: float, seed: int, items: int = 60, **given: Any) -> pd.DataFrame:
    """Cosines of a system with so much noise over the gold scores, which are the same for all systems."""
    gold = np.random.default_rng(0).normal(size=items)
    cosines = gold + np.random.default_rng(seed).normal(0, noise, items)
    subset = np.where(np.arange(items) < items // 3, "a", "b")
    return pd.DataFrame(
        {"split": "test", "subset": subset, "index": range(items), "cosine": cosines, "gold": gold}
    ).assign(**given)


def keep(plan: FakePlan, run: str, readout: str, items: pd.DataFrame, task: str = "stsb") -> None:
    """Write predictions as scoring does, beside an empty file of records."""
    artifact = plan.score(ScoreKey(run, readout, "sts", task))
    path = plan.root / artifact.folder / artifact.files[1]
    path.parent.mkdir(parents=True, exist_ok=True)
    items.to_parquet(path)
    path.with_name(artifact.files[0]).touch()
    seal(plan.root, artifact)


def with_items(plan: FakePlan, noise: dict[tuple[str, str], float], tasks: Iterable[str] = ("stsb",)) -> pd.DataFrame:
    """Write predictions of variants under read-outs, and return their scores."""
    lines = []
    for number, (variant, readout) in enumerate(noise):
        for run, task in itertools.product(plan.runs_of(variant), tasks):
            items = predictions(noise[variant, readout], 1000 * number + run.seed + 1)
            keep(plan, run.id, readout, items, task)
            value = spearmanr(items["cosine"], items["gold"])[0]
            lines.append(record(plan, run.id, readout, task=task, value=value, n=len(items)))
    return frame(lines)


def claims_of(plan: FakePlan, given: pd.DataFrame) -> list[cells.ClaimResult]:
    found: list[cells.ClaimResult] = view(plan, TABLE, given).claims()
    return found


def test_a_claim_holds_or_is_contradicted_only_where_the_interval_leaves_out_0(small: FakePlan):
    noise = {CLS: 0.3, DEFAULT: 3.0, ("unsup_simcse_distilbert", "first_last"): 3.0, FIRST_LAST: 0.3}
    held, fallen, untested, *_ = claims_of(small, with_items(small, noise))
    assert [claim.state for claim in (held, fallen, untested)] == ["holds", "contradicted", "cannot be tested"]
    assert held.comparison and held.comparison.low > 0 and held.comparison.seeds == 3
    assert held.evidence.startswith("95% interval +") and "(over 60 items and 3 seeds); min F'(1, " in held.evidence
    assert fallen.comparison and fallen.comparison.high < 0 and fallen.evidence.startswith("95% interval −")
    assert (untested.comparison, untested.difference) == (None, None)
    assert untested.evidence == "SimCSE-DistilBERT (trained through first-last): 3 of 3 seeds failed"


def test_a_claim_whose_sign_is_right_is_not_shown_where_the_interval_has_0_in_it(small: FakePlan):
    given = with_items(small, {CLS: 1.0, DEFAULT: 1.05})
    claim = claims_of(small, given)[0]
    assert claim.state == "not shown" and claim.comparison
    assert claim.comparison.low < 0 < claim.comparison.high


def test_a_claim_on_one_run_each_says_so_and_which_tests(tmp_path: Path):
    plan = FakePlan("small", project(tmp_path), [42])
    claim = claims_of(plan, with_items(plan, {CLS: 0.3, DEFAULT: 3.0}))[0]
    assert claim.state == "holds"
    assert re.fullmatch(
        r"95% interval \+\S+ to \+\S+ \(paired bootstrap over 60 items, one run each\); "
        r"Williams t\(57\) = \S+, p < 0.001; Steiger z = \S+, p < 0.001",
        claim.evidence,
    )


def test_a_claim_pairs_seeds_and_takes_the_numbers_of_the_cells(small: FakePlan):
    given = with_items(small, {CLS: 0.5, DEFAULT: 3.0})
    lacking = given.drop(index=given.index[1])
    claim = claims_of(small, lacking)[0]
    assert claim.comparison and claim.comparison.seeds == 2
    values = given.loc[[0, 2], "value"] - given.loc[3, "value"]
    assert claim.difference == pytest.approx(100 * values.mean())
    # Independently: the same arrays, by hand.
    runs = [run.id for run in small.runs_of("unsup_simcse_distilbert")]
    sides = [predictions(0.5, 42 + 1), predictions(0.5, 44 + 1), predictions(3.0, 1000 + 1)]
    assert len(runs) == 3
    first, second = np.stack([each["cosine"] for each in sides[:2]]), np.stack([sides[2]["cosine"]] * 2)
    part = Part(Sts.statistics()["spearman"], sides[0]["gold"].to_numpy(), first, second, 100)
    expected = compare([part], [(100 * value, 0.0) for value in values])
    assert (claim.comparison.low, claim.comparison.high) == pytest.approx((expected.low, expected.high))


def test_a_claim_on_an_average_is_over_the_items_of_all_its_tasks(full: FakePlan):
    tasks = [*STS, "stsb", "sickr"]
    given = with_items(full, {("unsup_simcse_bert_base", "cls"): 0.3, ("bert_base", "embed_last"): 2.0}, tasks)
    claim = next(each for each in claims_of(full, given) if "SimCSE-BERT-base beats the untouched" in each.text)
    assert claim.state == "holds" and claim.comparison
    assert (claim.comparison.items, claim.column) == (7 * 60, "Avg.")
    assert claim.difference == pytest.approx(claim.better - claim.worse)  # type: ignore[operator]
    # Independently: the seven tasks' items by hand, and the gains of the averages as printed.
    trained = [predictions(0.3, seed + 1) for seed in (42, 43, 44)]
    first, second = np.stack([each["cosine"] for each in trained]), np.stack([predictions(2.0, 1001)["cosine"]] * 3)
    part = Part(Sts.statistics()["spearman"], trained[0]["gold"].to_numpy(), first, second, 100 / 7)
    means = given.groupby("run", sort=False)["value"].first().round(4) * 100
    expected = compare([part] * 7, [(value, means.iloc[3]) for value in means[:3]])
    assert (claim.comparison.low, claim.comparison.high) == pytest.approx((expected.low, expected.high))


def test_a_claim_without_items_is_not_shown(small: FakePlan):
    given = with_items(small, {CLS: 0.3, DEFAULT: 3.0})
    (small.root / small.score(ScoreKey(str(given.loc[0, "run"]), "cls", "sts", "stsb")).record).unlink()
    claim = claims_of(small, given)[0]
    assert (claim.state, claim.comparison) == ("not shown", None)
    assert claim.difference is not None and "is not there, which has the values of single items" in claim.evidence


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"items": 59},
            r"sts/stsb/test: the predictions of two runs are of different data \(60 and 59 items\); delete",
        ),
        ({"gold": 1.0}, r"of different data \(other gold labels\); delete the older scores and run again"),
    ],
)
def test_predictions_of_different_items_are_refused(small: FakePlan, change: dict[str, Any], message: str):
    given = with_items(small, {CLS: 0.3, DEFAULT: 3.0})
    keep(small, str(given.loc[3, "run"]), "cls", predictions(3.0, 1001, **change))
    with pytest.raises(SembenchError, match=message):
        claims_of(small, given)


def both_sides(plan: FakePlan, *places: Where) -> list[cells.Scored]:
    """Scores of MiniLM and DistilBERT at the same place, one value each."""
    runs = [plan.runs_of(variant)[0].id for variant in ("minilm", "distilbert")]
    for run, seed in zip(runs, (1, 2), strict=True):
        keep(plan, run, "mean", predictions(0.5 * seed, seed))
    return [
        cells.Scored(values={run: 50.0}, seeds={run: None}, where=(place,), unit=METRICS[str(place.metric)])
        for run, place in zip(runs, places * 2, strict=False)
    ]


def test_subsets_are_resampled_apart_where_a_score_is_their_mean(small: FakePlan):
    place = Where(suite="sts", task="stsb", split="test", subset="", metric="spearman", readout="mean")
    sizes = {}
    for aggregation in ("all", "mean", "wmean"):
        parts = compared.items_of(small, *both_sides(small, place.model_copy(update={"aggregation": aggregation})))  # type: ignore[arg-type]
        sizes[aggregation] = [(len(part.gold), pytest.approx(part.weight)) for part in parts]
    assert sizes == {"all": [(60, 100)], "mean": [(20, 50), (40, 50)], "wmean": [(20, 100 / 3), (40, 200 / 3)]}
    of_subset = place.model_copy(update={"subset": "b", "aggregation": "subset"})
    [part] = compared.items_of(small, *both_sides(small, of_subset))  # type: ignore[arg-type]
    assert part.gold.tolist() == predictions(1, 1)["gold"][20:].tolist()


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"split": "dev"}, "different tasks, splits or metrics"),
        ({"metric": "accuracy"}, "different tasks, splits or metrics"),
    ],
)
def test_scores_of_different_things_are_not_compared(small: FakePlan, other: dict[str, str], message: str):
    place = Where(
        suite="sts", task="stsb", split="test", subset="", aggregation="all", metric="spearman", readout="mean"
    )
    with pytest.raises(compared.IncomparableError, match=message):
        compared.items_of(small, *both_sides(small, place, place.model_copy(update=other)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"metric": "accuracy"}, "accuracy of sts/stsb is no score of items that could be drawn anew"),
        ({"split": "dev"}, "split dev of sts/stsb has no values of single items"),
        ({"subset": "c"}, "subset c of split test of sts/stsb has no values"),
    ],
)
def test_what_has_no_items_says_so(small: FakePlan, given: dict[str, str], message: str):
    place = Where(
        suite="sts", task="stsb", split="test", subset="", aggregation="all", metric="spearman", readout="mean"
    )
    with pytest.raises(compared.IncomparableError, match=message):
        compared.items_of(small, *both_sides(small, place.model_copy(update=given)))  # type: ignore[arg-type]


def test_single_runs_are_compared_whatever_their_seeds_and_several_by_seed(small: FakePlan):
    place = Where(
        suite="sts", task="stsb", split="test", subset="", aggregation="all", metric="spearman", readout="mean"
    )
    one, other = both_sides(small, place)
    one, other = (
        dataclasses.replace(side, seeds=dict.fromkeys(side.values, seed)) for side, seed in ((one, 1), (other, 2))
    )
    said = compared.compared(small, one, other, [(one, other)])  # type: ignore[arg-type]
    assert (said.seeds, said.difference) == (1, 0)
    two = dataclasses.replace(one, values={**one.values, "x.s3": 1.0}, seeds={**one.seeds, "x.s3": 3})
    with pytest.raises(compared.IncomparableError, match="no two of their runs have the same seed; compare a single"):
        compared.compared(small, two, other, [(two, other)])  # type: ignore[arg-type]


def test_claims_stand_below_a_table_and_on_the_page_with_their_tests(small: FakePlan):
    given = with_items(small, {CLS: 0.3, DEFAULT: 3.0, TUNED: 3.0, FIRST_LAST: 0.3})
    rendering = view(small, TABLE, given).render()
    said = "Claim holds: Unsupervised SimCSE beats the untouched encoder under the same read-out"
    assert said in rendering["md"].replace("\\", "") and said in rendering["tex"]
    assert "Claim contradicted: It still does" in rendering["md"]
    assert "Claim cannot be tested: Training through first-last pooling" in rendering["md"]
    shown = read_html(rendered(without_figures(small), given))
    assert "contradicted" in shown.text and "min F'(1, " in shown.text and "Claim holds: " not in shown.text
    assert {"holds", "contradicted", "cannot-be-tested"} <= {
        attrs.get("class") for tag, attrs in shown.tags if tag == "li"
    }


# ----------------------------------------------------------------------------------- what the papers' tables look like


def rows_shown(plan: FakePlan, key: str) -> dict[str, list[str]]:
    groups = view(plan, key).printed().groups
    return {row.label.text: [cell.text for cell in row.cells] for _, rows in groups for row in rows}


def test_table_2_has_an_axis_of_encoders(full: FakePlan):
    assert rows_shown(full, "simcse_table_2") == {
        "Next sentence": ["failed (67.1)", "failed (68.9)"],
        "Next 3 sentences": ["failed (67.4)", "failed (68.8)"],
        "Delete one word": ["failed (75.9)", "failed (73.1)"],
        "Unsupervised SimCSE": ["failed (82.5)", "failed (80.7)"],
    }
    needed = {key.run.split(".")[0] for key in full.view("simcse_table_2").needs.scores}
    assert len(needed) == 8 and {"next_three_bert_base", "augmented_bert_base_delete_one_two"} <= needed


def test_table_6_has_read_outs_by_row_and_trainings_by_column(full: FakePlan, small: FakePlan):
    shown = rows_shown(full, "simcse_table_6")
    assert shown["w/ MLP (train)"] == ["failed (82.5)", "failed (85.8)"]
    assert shown["First-last avg."] == ["failed (81.2)", "failed (86.1)"]
    assert shown["w/o MLP"] == ["failed (80.9)", "failed (86.2)"]
    needed = {(key.run.split(".")[0], key.readout) for key in small.view("simcse_table_6").needs.scores}
    assert needed == {
        *((f"{kind}_simcse_distilbert_baseline", at) for kind in ("unsup", "sup") for at in ("cls", "cls_mlp")),
        *((f"{kind}_simcse_distilbert_no_mlp", "cls") for kind in ("unsup", "sup")),
        ("unsup_simcse_distilbert_first_last_baseline", "first_last"),
        ("sup_simcse_distilbert_first_last", "first_last"),
        *((f"{kind}_simcse_bert_tiny", at) for kind in ("unsup", "sup") for at in ("cls", "cls_mlp")),
        *((f"{kind}_simcse_bert_tiny_no_mlp", "cls") for kind in ("unsup", "sup")),
        *((f"{kind}_simcse_bert_tiny_first_last", "embed_last") for kind in ("unsup", "sup")),
    }


def test_laptops_see_the_ablations_beside_the_papers_numbers(small: FakePlan):
    """One row: BERT cannot be had and shows what the paper prints, DistilBERT and BERT-tiny are measured."""
    shown = rows_shown(small, "simcse_table_2")["Unsupervised SimCSE"]
    assert shown == ["– (82.5)", "– (80.7)", *["failed"] * 4]
    shown = [cell for cell in built(small, "simcse_table_1") if cell.row in ("none", "crop_10")]
    assert [(cell.column, cell.status, cell.paper_value) for cell in shown] == [
        *(("stsb", "missing", 82.5), ("distilbert", "failed", None), ("bert_tiny", "failed", None)),
        *(("stsb", "missing", 77.8), ("distilbert", "failed", None), ("bert_tiny", "failed", None)),
    ]
    assert {run.split(".")[0] for cell in shown for run in cell.runs} == {
        *("unsup_simcse_distilbert_baseline", "augmented_distilbert_crop_10"),
        *("unsup_simcse_bert_tiny", "augmented_bert_tiny_crop_10"),
    }


@pytest.mark.parametrize(
    ("table", "row", "printed"),
    [("simcse_table_b2", "whitening_task_wmean", 69.19), ("simcse_table_b3", "bert_whitening_task", 69.21)],
)
def test_aggregations_go_by_row_or_table_but_for_tasks_with_one_test_set(full: FakePlan, table, row, printed):
    found = {cell.column: cell for cell in built(full, table) if cell.row == row}
    assert [found[task].where[0].aggregation for task in ("sts12", "sts16", "stsb", "sickr")] == [
        "wmean",
        "wmean",
        "all",
        "all",
    ]
    assert {cell.readout for cell in found.values()} == {"first_last.whitening_task"}
    assert found["avg"].paper_value == printed


def test_table_a1_compares_recipes_with_the_paper(full: FakePlan):
    printed = view(full, "simcse_table_a1").printed()
    (_, rows), (_, supervised) = printed.groups
    first = dict(zip([column.text for column in printed.columns], rows[0].cells, strict=True))
    assert [(cell.text, cell.verdict) for cell in first.values()] == [
        ("64 (64)", "matches"), ("0.0003 (3e-05)", "above paper"), ("1 (1)", "matches"), ("0.05", ""), ("mlp", ""), ("32", ""),
        ("sentences", ""),
    ]  # fmt: skip
    assert supervised[0].cells[0].verdict == "below paper"  # 64 and 512
    texts = view(full, "simcse_table_a1").render()
    assert "simcse_table_a1,unsup_bert_base,BERT-base,batch_size,64,64.0,matches,measured," in texts["csv"]
    assert "| Model | Batch size |" in texts["md"]  # no read-outs, no column of them
    assert r"\begin{tabular}{lrrrrrrr}" in texts["tex"]


# ------------------------------------------------------------------------------------------------------------- tables


def test_the_csv_is_the_long_form(small: FakePlan):
    lines = view(small, TABLE, scores_of(small)).render()["csv"].splitlines()
    assert lines[0] == "table,row,row_label,column,value,sd,n_seeds,paper_value,delta,verdict,status,runs,reason"
    runs = " ".join(run.id for run in small.runs_of("unsup_simcse_distilbert"))
    assert f"{TABLE},unsup_distilbert_cls,SimCSE-DistilBERT ([CLS]),stsb,54.0,1.0,3,,,,measured,{runs}," in lines
    assert f"{TABLE},bert_flow,BERT-base-flow,stsb,,,0,68.66,,,missing,,normalising flows are not built yet" in lines


def test_csv_numbers_have_two_decimals_more_than_the_table(small: FakePlan):
    lines = scored(small, {("minilm", "mean"): [0.82013579]})
    long = cells.table_frame(built(small, TABLE, frame(lines)))
    row = long[(long["row"] == "minilm") & (long["column"] == "stsb")].iloc[0]
    assert (row["value"], row["delta"]) == (82.0136, -0.0164)


def test_markdown_shows_both_numbers_spread_note_and_shared_footnotes(small: FakePlan):
    shown = view(small, TABLE, scores_of(small)).render()["md"]
    assert f"> **{NOTE}**" in shown
    assert "| 82.01 (82.03) |" in shown
    assert "| **SimCSE-DistilBERT (\\[CLS\\])** | \\[CLS\\] |" in shown
    assert "| 54.00 ± 1.00 |" in shown
    assert "– (68.66)" in shown
    assert len(re.findall(r"^- <sup>\w+</sup> normalising flows are not built yet$", shown, flags=re.M)) == 1
    marks = re.findall(r"flow<sup>(\w+)</sup>", shown)
    assert len(marks) == 2
    assert len(set(marks)) == 1
    columns = [line.count(" | ") for line in shown.splitlines() if line.startswith("| ")]
    assert set(columns) == {10}


def test_latex_escapes_what_means_something_to_it():
    assert text.latex_escape(r"50% & a_b #1 {x} $y ~^\ [0]") == (
        r"50\% \& a\_b \#1 \{x\} \$y \textasciitilde{}\textasciicircum{}\textbackslash{} {[}0{]}"
    )


def renamed(plan: FakePlan, label: str) -> FakePlan:
    """Give one row of the table another label."""
    return rewritten(plan, TABLE, "label: all-MiniLM-L6-v2 (mean)", f"label: {json.dumps(label)}")


def test_latex_is_booktabs_with_groups_and_escaped_labels(small: FakePlan):
    plan = renamed(small, "A & B_1 #2 100%")
    shown = view(plan, TABLE, scores_of(plan)).render()["tex"]
    assert r"A \& B\_1 \#2 100\% & mean &" in shown
    assert r"\multicolumn{11}{l}{\textit{Supervised models}} \\" in shown
    assert r"54.00 $\pm$ 1.00" in shown
    assert "(82.03)" in shown
    for line in shown.splitlines():
        assert re.sub(r"\\.", "", line).count("&") in (0, 10)
    assert shown.count("{") - shown.count(r"\{") == shown.count("}") - shown.count(r"\}")
    assert all(rf"\{rule}rule" in shown for rule in ("top", "mid", "bottom"))


class Reader(HTMLParser):
    """Collects tags, attributes and text, and checks that tags are closed in order."""

    VOID = frozenset({"meta", "link", "br", "img", "image"})

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read_html(shown: str) -> Reader:
    reader = Reader()
    reader.feed(shown)
    reader.close()
    assert reader.open == []
    return reader


EVIL = "</script><script>alert('x')</script><img src=x onerror=alert(1)>"


def test_html_escapes_labels(small: FakePlan):
    plan = renamed(small, EVIL)
    reader = read_html(view(plan, TABLE, scores_of(plan)).render()["html"])
    assert {"script", "img", "button"}.isdisjoint(tag for tag, _ in reader.tags)
    assert EVIL in reader.text
    assert NOTE in reader.text


INJECTED = (
    EVIL,
    "</style><style>*{display:none}</style>",
    '" onmouseover="alert(1)',
    "<svg/onload=alert(1)>",
    "&#x3c;script&#x3e; &lt;b&gt; &amp; R&D",
    "{{ 7 * 7 }} {% raw %} {# c #}",
    r"$\write18{touch x}$ \input{/etc/passwd}",
    r"\end{tabular} & \\ \catcode`\$=12 %",
    "[link](javascript:alert(1)) ![i](javascript:alert(1)) <javascript:alert(1)>",
    "`code` *b* _i_ ~~s~~ | cell |",
    "# head",
    "1. list",
    "- item",
    "+ item",
    "---",
    "===",
    "> quote",
    "[bold red]x[/] [i]",
    "\x1b[31mred\x1b[0m\x07",
    "\u202eevil\u202c \u2066x",
    "\u200bhidden\xad",
    "two\nlines\u2028more",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "@SUM(A1)",
    "\t-2+3",
)


@pytest.mark.parametrize("given", INJECTED)
def test_injected_text_is_text_in_every_form(given: str):
    """What stands in registry, data or an error is shown, and does nothing."""
    said = text.flat(given)
    assert said.isprintable()
    markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    assert markdown.render(text.markdown_escape(given)) == f"<p>{html.escape(said, quote=False)}</p>\n".replace(
        '"', "&quot;"
    )
    latex = text.latex_escape(given)
    own = r"\\(textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar)\{\}|\\[&%$#_{}]|\$[-]\$|\{[][]\}"
    assert not set(re.sub(own, "", latex)) & set("\\&%$#_{}~^<>|")
    (cell,) = pd.read_csv(io.StringIO(text.csv_text(pd.DataFrame({"a": [given]}))), keep_default_na=False)["a"]
    assert cell in (given, f"'{given}") and not cell.lstrip().startswith(("=", "+", "-", "@"))
    page = text.environment(ROOT).from_string('<p title="{{ given }}">{{ given }}</p>').render(given=given)
    reader = read_html(page)
    assert [tag for tag, _ in reader.tags] == ["p"] and reader.tags[0][1].keys() == {"title"}
    assert reader.text == reader.tags[0][1]["title"] == text.visible(given)


def test_numbers_of_a_csv_stay_numbers():
    frame = pd.DataFrame({"=head": ["+ MLP", None], "delta": [-1.5, 2.0], "n": [-1, 2]})
    assert text.csv_text(frame) == "'=head,delta,n\n'+ MLP,-1.5,-1\n,2.0,2\n"


@pytest.mark.filterwarnings("ignore:Glyph")
def test_an_svg_can_be_read_whatever_its_labels_hold(small: FakePlan):
    plan = rewritten(small, FIGURE, "label: MiniLM,", r'label: "</text><script>\e[31m\u202e&",', "figures")
    svg = io.BytesIO()
    drawing.save(view(plan, FIGURE, scores_of(plan)).drawn().drawing, svg, "svg")
    drawn = ElementTree.fromstring(svg.getvalue())
    assert r"</text><script>\x1b[31m\u202e&" in {each.text for each in drawn.iter()}
    assert not any(each.tag.endswith("script") for each in drawn.iter())


FORMULA = r"Eq. {2} of $\mathcal{L}_{x}$ & {{ more }}"


def test_braces_and_formulas_in_captions_and_labels_are_text(small: FakePlan):
    plan = rewritten(small, TABLE, "title: Sentence embedding performance on STS tasks", f"title: '{FORMULA}'")
    plan = rewritten(plan, FIGURE, "label: MiniLM,", f"label: '{FORMULA}',", "figures")
    shown = view(plan, TABLE).render()
    assert FORMULA in read_html(shown["html"]).text
    assert r"Eq. \{2\} of \$\textbackslash{}mathcal\{L\}\_\{x\}\$ \& \{\{ more \}\}" in shown["tex"]
    assert r"$\mathcal{L}_{x}$" in view(plan, FIGURE, scores_of(plan)).page().html


def test_a_table_is_written_in_four_forms(small: FakePlan):
    paths = render.write_view(small, TABLE, scores_of(small))  # type: ignore[arg-type]
    folder = small.root / "results" / "small" / "tables"
    assert paths == [folder / f"{TABLE}.{suffix}" for suffix in ("csv", "md", "tex", "html")]
    assert sorted(folder.iterdir()) == sorted(paths)


def test_a_reason_that_only_one_cell_has_is_marked_there(small: FakePlan):
    lines = scored(small, STSB) + scored(
        small, {("unsup_simcse_distilbert", "cls"): [0.5]}, split="dev", sample_hash="bb"
    )
    lines += scored(small, {("unsup_simcse_distilbert", "cls"): [0.5] * 3}, task="sickr", sample_hash="cc")
    printed = view(small, TABLE, frame(lines)).printed()
    letters = {reason: mark for mark, reason in printed.reasons}
    row = next(row for _, rows in printed.groups for row in rows if row.label.text == "SimCSE-DistilBERT ([CLS])")
    assert row.label.mark == ""
    marks = {cell.key.split("/")[1]: cell.mark for cell in row.cells}
    assert marks["stsb_dev"] == letters["2 of 3 seeds failed"]
    assert marks["stsb"] == marks["sickr"] == ""


# ------------------------------------------------------------------------------------------------------------ figures


def test_the_figure_csv_holds_the_records(small: FakePlan):
    written = view(small, FIGURE, scores_of(small)).drawn().frame
    assert list(written.columns) == [
        "figure", "label", "run", "readout", "uniformity", "alignment", "colour", "n_positives", "n_sentences",
        "splits", "status", "reason",
    ]  # fmt: skip
    lines = written[written["label"] == "SimCSE-DistilBERT [CLS]"]
    assert lines["run"].tolist() == [run.id for run in small.runs_of("unsup_simcse_distilbert")]
    assert lines["uniformity"].tolist() == [-1.9] * 3
    assert lines["alignment"].tolist() == [0.3] * 3
    assert lines["colour"].tolist() == [0.53, 0.54, 0.55]
    assert set(lines["n_positives"]) == {338}
    assert set(lines["n_sentences"]) == {2900}
    assert set(lines["splits"]) == {"dev+test"}
    failed = written[written["label"] == "DistilBERT first-last"].iloc[0]
    assert (failed["status"], failed["reason"]) == ("failed", "no score of uniformity, alignment")


def test_a_figure_renders_to_the_same_bytes(small: FakePlan):
    first, second = (view(small, FIGURE, scores_of(small)).render() for _ in range(2))
    assert first == second
    assert set(first) == {"svg", "pdf", "png", "csv"}
    svg = first["svg"].decode()
    assert "SimCSE-DistilBERT [CLS]" in svg
    assert "dc:date" not in svg
    assert " ".join(NOTE.split()[:3]) in svg


def test_labels_cover_neither_each_other_nor_the_axes(small: FakePlan):
    drawn = view(small, FIGURE, scores_of(small)).drawn()
    axes = drawn.drawing.axes[0]
    labels = [label for label in axes.texts if label.get_text()]
    assert {label.get_text() for label in labels} == {"DistilBERT [CLS]", "SimCSE-DistilBERT [CLS]", "MiniLM"}
    boxes = [label.get_window_extent() for label in labels]
    inside = axes.get_window_extent()
    for i, box in enumerate(boxes):
        assert inside.x0 <= box.x0 < box.x1 <= inside.x1
        assert inside.y0 <= box.y0 < box.y1 <= inside.y1
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])


@pytest.mark.parametrize("key", [FIGURE, "simcse_figure_f1", "simcse_figure_2", "simcse_figure_g1"])
def test_a_figure_without_any_score_is_still_drawn(small: FakePlan, key: str):
    assert "no point of this figure has a score" in view(small, key).page().html


def test_a_figure_is_written_in_three_formats_with_its_numbers(small: FakePlan):
    paths = render.write_view(small, "simcse_figure_f1", frame([]))  # type: ignore[arg-type]
    assert [path.suffix for path in paths] == [".svg", ".pdf", ".png", ".csv"]
    starts = [path.read_bytes()[:4] for path in paths]
    assert starts[:3] == [b"<?xm", b"%PDF", b"\x89PNG"]
    assert paths[3].read_text().startswith("figure,panel,label,run,readout,index,value")


STUDY = pd.DataFrame({"label": "free", "step": [0, 10], "loss": [8.0, 1.0], "own_cosine": 0.1, "cross_cosine": 0.0})


def test_training_curves_come_from_the_runs_own_records(small: FakePlan, monkeypatch: pytest.MonkeyPatch):
    key, variant = "analogy_figure_loss", "analogy_distilbert"
    monkeypatch.setattr(curves, "free_curves", lambda _: STUDY)
    first, second = small.runs_of(variant)[:2]
    for run, loss in ((first, -3.0), (second, -4.0)):
        curve = [
            {"step": 0, "loss": None, "dev": 0.29},
            {"step": 5, "loss": loss, "dev": 0.4, "cross_cosine": 0.9, "own_cosine": 0.9},
        ]
        write_json(small.root / run.artifact.folder / "run.json", {"run": run.id, "curve": curve})
        seal(small.root, run.artifact)
    assert set(small.view(key).needs.runs) > {first.id, second.id}
    drawn = view(small, key).drawn()
    numbers = drawn.frame
    assert numbers[numbers["step"] == 5]["loss"].tolist() == [-3.0, -4.0]
    assert set(numbers["run"]) == {first.id, second.id, curves.FREE}
    assert set(numbers["label"]) == {"e1 - e2, third pairs (paper)", "free"}
    assert drawn.absent["e1 - e2, cross-relation"] == "not trained"
    # Free vectors have a row of their own, without a dev score.
    axes = drawn.drawing.axes
    assert [each.get_visible() for each in axes] == [True, True, True, False, *[True] * 4]
    assert axes[0].get_lines()[0].get_ydata().tolist() == [8.0, 1.0]
    assert [[round(float(y), 9) for y in line.get_ydata()] for line in axes[7].get_lines()] == [[29.0, 40.0]] * 2


def test_trajectories_lead_from_the_untouched_encoder_in_the_direction_of_training(small: FakePlan):
    key = "simcse_figure_2"
    start = {"step": 0, "alignment": 0.2, "uniformity": -1.0, "dev": 0.29}
    paths = {
        "unsup_simcse_bert_tiny_trajectory": [(0.25, -2.0), (0.24, -2.5)],
        "unsup_simcse_bert_tiny_fixed_trajectory": [(0.4, -2.25)],
    }
    for variant, path in paths.items():
        run = small.runs_of(variant)[0]
        curve = [start, *({"step": 10 * i, "alignment": a, "uniformity": u} for i, (a, u) in enumerate(path, start=1))]
        write_json(small.root / run.artifact.folder / "run.json", {"run": run.id, "curve": curve})
        seal(small.root, run.artifact)
    drawn = view(small, key).drawn()
    assert list(drawn.frame.columns) == ["figure", "label", "run", "step", "uniformity", "alignment", "dev"]
    assert drawn.frame["step"].tolist() == [0, 10, 0, 10, 20]
    assert drawn.absent == {"No dropout": "not trained", "Delete one word": "not trained"}
    axes = drawn.drawing.axes[0]
    assert {line.get_label(): line.get_xydata().tolist() for line in axes.get_lines()} == {
        "Fixed 0.1": [[-1.0, 0.2], [-2.25, 0.4]],
        "Unsup. SimCSE": [[-1.0, 0.2], [-2.0, 0.25], [-2.5, 0.24]],
    }
    # An arrow a step, its head nearer to where the step ends; one star for the start that all share.
    heads = [(each.xyann, each.xy) for each in axes.texts]
    assert [tuple(np.round(tail, 9)) for tail, _ in heads] == [(-1.0, 0.2), (-1.0, 0.2), (-2.0, 0.25)]
    assert [tuple(np.round(head, 9)) for _, head in heads] == [(-1.75, 0.32), (-1.6, 0.23), (-2.3, 0.244)]
    assert [each.get_offsets().tolist() for each in axes.collections] == [[[-1.0, 0.2]]]


@pytest.mark.parametrize(
    ("moves", "expected"),
    [
        ([0] * 3 + [1] * 48, [3, 11, 19, 27, 35, 43]),  # a twelfth of the way, then a sixth each
        ([48] + [1] * 24, [0, 53, 65]),  # two thirds of the way in the first step
        ([0] * 5, []),
    ],
)
def test_a_long_trajectory_has_few_arrows_evenly_by_its_length(small: FakePlan, moves: list[int], expected: list[int]):
    run = small.runs_of("unsup_simcse_bert_tiny_trajectory")[0]
    way = np.cumsum([0, *moves])
    curve = [{"step": 10 * i, "alignment": 0.2, "uniformity": -float(x)} for i, x in enumerate(way)]
    write_json(small.root / run.artifact.folder / "run.json", {"run": run.id, "curve": curve})
    seal(small.root, run.artifact)
    axes = view(small, "simcse_figure_2").drawn().drawing.axes[0]
    assert [-each.xyann[0] for each in axes.texts] == pytest.approx(expected, abs=1)


def write_predictions(plan: FakePlan, key: str, items: dict[str, list[list[dict[str, Any]]]]) -> None:
    """Seal predictions of the first seeds of variants, of untransformed read-outs, under a line of another split."""
    for needed in plan.view(key).needs.scores:
        run = plan.run(needed.run)
        number = [each.id for each in plan.runs_of(run.variant)].index(run.id)
        if "." not in needed.readout and number < len(items.get(run.variant, [])):
            artifact = plan.score(needed)
            path = plan.root / artifact.folder / artifact.files[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = items[run.variant][number]
            pd.DataFrame([*lines, {**lines[0], "split": "other"}]).to_parquet(path)
            path.with_name(artifact.files[0]).touch()
            seal(plan.root, artifact)


def test_singular_values_are_read_from_predictions(small: FakePlan):
    key = "simcse_figure_f1"
    values = {"distilbert": [[1.0, 0.5, 0.2]], "unsup_simcse_distilbert": [[1.0, 0.8, 0.6], [1.0, 0.6, 0.4]]}
    items = {
        variant: [[{"split": "pdata", "index": i, "value": value} for i, value in enumerate(each)] for each in seeds]
        for variant, seeds in values.items()
    }
    write_predictions(small, key, items)
    drawn = view(small, key).drawn()
    left = drawn.drawing.axes[0].get_lines()
    assert {line.get_label(): list(line.get_ydata()) for line in left} == {
        "DistilBERT": [1.0, 0.5, 0.2],
        "SimCSE-DistilBERT": [pytest.approx(value) for value in (1.0, 0.7, 0.5)],  # mean of two seeds
    }
    assert len(drawn.frame) == 9
    assert drawn.absent["Unsupervised: DistilBERT-whitening"] == "no singular values: the run failed"


def test_cosines_have_a_curve_for_each_group_of_gold_scores(small: FakePlan):
    def pairs(*given: tuple[float, float]) -> list[dict[str, Any]]:
        return [{"split": "test", "cosine": cosine, "gold": gold} for cosine, gold in given]

    key, seeds = "simcse_figure_g1", [pairs((0.5, 0.2), (0.7, 0.9), (0.1, 5.0)), pairs((0.3, 0.2), (0.3, 0.9))]
    write_predictions(small, key, {"distilbert": [pairs((-1.0, 1.0))], "unsup_simcse_distilbert": seeds})
    drawn = view(small, key).drawn()
    curves = drawn.frame.groupby(["label", "run", "group"], sort=False)
    found = [(label, group, len(part), part["pairs"].iloc[0]) for (label, _, group), part in curves]
    assert found == [
        ("DistilBERT", "1-2", 201, 1),
        ("SimCSE-DistilBERT", "0-1", 201, 2),
        ("SimCSE-DistilBERT", "4-5", 201, 1),
        ("SimCSE-DistilBERT", "0-1", 201, 2),
    ]
    peaks = drawn.frame.loc[curves["density"].idxmax()]
    assert peaks["cosine"].tolist() == [-1.0, 0.5, 0.1, 0.3]
    assert peaks["mean"].tolist() == pytest.approx([-1.0, 0.6, 0.1, 0.3])
    assert [axes.get_title() for axes in drawn.drawing.axes] == ["DistilBERT", "SimCSE-DistilBERT"]
    # The stroke on a group's line is the mean over its seeds: 0.45 of 0.6 and 0.3.
    strokes = [list(line.get_xdata()) for line in drawn.drawing.axes[1].get_lines() if line.get_linewidth() == 1]
    assert strokes == [[pytest.approx(0.1)] * 2, [pytest.approx(0.45)] * 2]
    assert drawn.absent["Supervised: MiniLM"] == "no cosines: the run failed"


def test_a_curve_may_lack_anything():
    assert drawing.training_chart({}) is None
    assert drawing.training_chart({"curve": [{"step": 0}], "losses": []}) is None
    assert drawing.training_chart({"curve": [{"step": 0, "dev": 0.3}]}) is not None
    long = drawing.training_chart({"losses": [1.0, 3.0] * 2000})
    assert long is not None
    (line,) = long.axes[0].lines
    shown = np.asarray(line.get_ydata())
    assert len(shown) == 400
    assert set(shown.tolist()) == {2.0}  # each point is the mean of five pairs


def test_retrieved_sentences_stand_side_by_side(small: FakePlan):
    key, empty = "simcse_table_8", view(small, "simcse_table_8")
    assert empty.render()["csv"].splitlines() == ["query,rank,encoder,run,sentence,cosine"]
    assert "MiniLM: the run failed." in empty.render()["md"]

    def items(*sentences: str) -> list[dict[str, Any]]:
        asked = [(query, rank) for query in ("a dog", "z | q") for rank in (1, 2)]
        both = zip(asked, sentences, strict=True)
        return [{"split": "captions", "query": q, "rank": r, "sentence": s, "cosine": 0.9 / r} for (q, r), s in both]

    first, second = items("x", "y & y", "w", "v"), items("never", "shown", "of", "seed 2")
    write_predictions(small, key, {"minilm": [items("k", "l", "m", "n")], "unsup_simcse_distilbert": [first, second]})
    small.lacking["bert_tiny"] = "no such encoder"
    values = {("minilm", "mean"): [0.5], ("unsup_simcse_distilbert", "cls"): [0.25, 0.75]}
    given = frame(scored(small, values, suite="retrieval", task="flickr30k", split="captions", metric="same_image"))
    shown = view(small, key, given).render()
    lines = [line for line in shown["md"].splitlines() if line.startswith("|")]
    assert lines[0] == "| Query | Rank | Unsupervised SimCSE-DistilBERT | MiniLM |"
    assert lines[2:] == [
        "| a dog | 1 | x (0.900) | k (0.900) |",
        "|  | 2 | y & y (0.450) | l (0.450) |",
        r"| z \| q | 1 | w (0.900) | m (0.900) |",
        "|  | 2 | v (0.450) | n (0.450) |",
    ]
    assert "Same_image: Unsupervised SimCSE-DistilBERT 25.00, MiniLM 50.00." in shown["html"]
    assert "BERT-tiny: no such encoder." in shown["html"]
    assert r"y \& y (0.450)" in shown["tex"]
    assert len(shown["csv"].splitlines()) == 9
    assert "seed 2" not in shown["csv"]
    assert dict(small.view(key).entry.chosen.plugin.absent(view(small, key).config, small)) == {
        "BERT-tiny": "no such encoder"
    }


# ---------------------------------------------------------------------------------------------------- data-set tables


def sizes(plan: FakePlan, drop: str = "") -> Path:
    made = pd.DataFrame({"relation": ["E01", "E01", "L02"], "name": ["a:b", "a:b", "c_d:e&f"], "word_pairs": [1, 2, 3],
                         "found": [1, 1, 1], "kept": [1, 1, 1], "definition_pairs": [4, 5, 6]})  # fmt: skip
    path = plan.root / plan.data("dsbats_sn").folder / "sizes.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    made.drop(columns=drop or []).to_csv(path, index=False)
    seal(plan.root, plan.data("dsbats_sn"))
    return path


def test_a_data_sets_table_shows_its_columns_in_four_forms(small: FakePlan):
    key = "analogy_table_2"
    assert view(small, key).page() is None  # nothing to show before the data set is made
    sizes(small)
    shown = view(small, key).render()
    assert shown["csv"].splitlines()[0] == "Id,Relation,Word pairs,Both found,Kept,Definition pairs"
    assert "L02,c_d:e&f,3,1,1,6" in shown["csv"]
    # For people words of several parts are written as words.
    assert r"c d:e\&f" in shown["tex"]
    assert "| L02 | c d:e&f | 3 | 1 | 1 | 6 |" in shown["md"]
    assert "<td>c d:e&amp;f</td>" in shown["html"]
    assert small.view(key).needs == Needs(data=("dsbats_sn",))


def test_a_data_sets_table_can_be_cut(small: FakePlan):
    sizes(small)
    table_2 = small.registry.views["analogy_table_2"].chosen
    config = table_2.config.model_copy(
        update={"where": {"relation": ["E01"]}, "first_per": SimpleNamespace(column="relation", n=1)}
    )
    shown = table_2.plugin(config, small, frame([]), "t")
    assert shown.frame()["Definition pairs"].tolist() == [4]
    none = table_2.plugin(config.model_copy(update={"where": {"relation": ["L09"]}}), small, frame([]), "t")
    assert "No row of the data set is among those that are asked for." in none.render()["md"]
    sizes(small, drop="kept")
    with pytest.raises(SembenchError, match="lacks the column 'kept'"):
        view(small, "analogy_table_2").render()


def test_a_data_set_that_was_edited_is_not_shown(small: FakePlan):
    path = sizes(small)
    path.write_text(path.read_text().replace("a:b", "x:y"))
    with pytest.raises(SembenchError, match=r"sizes\.csv was changed after it was made; delete"):
        view(small, "analogy_table_2").render()


# --------------------------------------------------------------------------------------------------------------- page

RUN = {
    "versions": {"python": "3.11.2", "torch": "2.13.0"},
    "hardware": {"cpu": "some <cpu> & more", "cores": 2},
    "precision": "bf16",
    "steps": 40,
    "segments": [{"start_step": 0, "end_step": 40, "seconds": 12.5, "host": "some-machine"}],
    "best": {"step": 40, "dev": float("nan")},
    "curve": [{"step": 0, "loss": None, "dev": 0.29}, {"step": 40, "loss": 0.1, "dev": 0.53}],
    "losses": [2.1, 1.7, 0.4],
}


def with_files(plan: FakePlan) -> FakePlan:
    """Write a run.json and the record of a data set as training and fetching do."""
    run = plan.root / plan.runs_of("unsup_simcse_distilbert")[0].artifact.folder / "run.json"
    fetched = plan.data("sts_benchmark")
    made = {
        "key": fetched.key,
        "files": {"dev.csv": "12" * 32},
        "inputs": [],
        "facts": {"source": {"kind": "pypi", "origin": "some-package==1.0.3"}},
        "made": "2025-01-01T00:00:00+00:00",
    }
    for path, value in ((run, RUN), (plan.root / fetched.record, made)):
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(value), encoding="utf-8")
    seal(plan.root, plan.runs_of("unsup_simcse_distilbert")[0].artifact)
    return plan


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakePlan, pd.DataFrame, str]]:
    """Return a plan with files, its scores, and the page made of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coordinates, "tasks_of", tasks_of)
        plan = with_files(FakePlan("small", project(tmp_path_factory.mktemp("site")), [42, 43, 44]))
        plan.lacking |= {f"sts/{task}": f"data set {task}: needs a mirror folder" for task in STS}
        yield plan, scores_of(plan), rendered(plan, scores_of(plan))


def without_figures(plan: FakePlan) -> FakePlan:
    for path in (plan.root / "registry" / "figures").iterdir():
        path.unlink()
    return FakePlan(plan.name, plan.root, plan.seeds, plan.papers)


def rendered(plan: FakePlan, given: pd.DataFrame) -> str:
    return page.render_page(plan, given)  # type: ignore[arg-type]


def embedded(shown: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="provenance-data">(.*?)</script>', shown, flags=re.S)
    assert found
    known: dict[str, Any] = json.loads(found[1], parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    return known


def records(known: dict[str, Any], entry: dict[str, Any], column: str) -> list[Any]:
    place = known["records"]["columns"].index(column)
    return [known["records"]["rows"][str(label)][place] for label in entry["records"]]


def test_every_cell_has_its_provenance_on_the_page(site: tuple[FakePlan, pd.DataFrame, str]):
    small, given, shown = site
    known = embedded(shown)
    found = {
        key: built(small, key, given) for key in small.chosen_views() if isinstance(view(small, key), scores.Scores)
    }
    expected = {f"{key}/{cell.row}/{cell.column}" for key, of_table in found.items() for cell in of_table}
    assert set(known["cells"]) == expected
    buttons = [attrs["data-cell"] for tag, attrs in read_html(shown).tags if tag == "button" and "data-cell" in attrs]
    assert sorted(str(name) for name in buttons) == sorted(name.partition("/")[2] for name in expected)
    entry = known["cells"][f"{TABLE}/unsup_distilbert_cls/stsb"]
    assert records(known, entry, "value") == [0.53, 0.54, 0.55]
    assert set(records(known, entry, "precision")) == {"fp32"}
    run = small.runs_of("unsup_simcse_distilbert")[0]
    assert records(known, entry, "file")[0] == str(small.score(ScoreKey(run.id, "cls", "sts", "stsb")).record)
    assert known["runs"][run.id]["recipe"]["learning_rate"] == 3e-4
    assert known["runs"][run.id]["run"]["versions"]["torch"] == "2.13.0"
    assert known["runs"][run.id]["run"]["best"] == {"step": 40, "dev": None}
    assert known["data"][known["runs"][run.id]["data"]]["licence"] == "free"
    assert known["backbones"][known["runs"][run.id]["backbone"]]["title"] == "A data set"
    assert all(name in known["runs"] for cell in found[TABLE] for name in cell.runs)


def test_a_record_is_embedded_once(site: tuple[FakePlan, pd.DataFrame, str]):
    known = embedded(site[2])
    named = [label for entry in known["cells"].values() for label in entry.get("records", ())]
    assert len(named) > len(set(named)) == len(known["records"]["rows"])


def test_an_average_shows_the_records_of_its_parts(full: FakePlan):
    lines = all_columns(full, "bert_base", "embed_last", [[0.7] * 7])
    known = embedded(rendered(without_figures(full), frame(lines)))
    entry = known["cells"][f"{TABLE}/bert_base_first_last/avg"]
    assert len(set(records(known, entry, "task"))) == 7
    assert entry["metric"] == "mean of STS12, STS13, STS14, STS15, STS16, STS-B, SICK-R, each rounded first"


def test_a_gain_shows_the_records_of_both_rows(both: FakePlan):
    entry = cell_of(built(both, STS_TABLE, given := frame(poolings(both))), "bert_cls_tuned", "gain")
    assert set(given.loc[list(entry.records), "variant"]) == {"bert_base", "analogy_bert"}


def test_the_page_stands_alone_and_says_what_it_is(site: tuple[FakePlan, pd.DataFrame, str]):
    _, _, shown = site
    reader = read_html(shown)
    for tag, attrs in reader.tags:
        for name in ("src", "href", "xlink:href"):
            assert (attrs.get(name) or "#").startswith(("#", "data:")), (tag, attrs)
    assert "url(http" not in shown
    assert "@import" not in shown
    for said in (
        NOTE,
        "not shown",
        "cannot be tested",
        "scale=small",
        "some-package==1.0.3",
        "seed 42",
        "Singular values",
    ):
        assert said in reader.text
    assert "some-machine" not in shown
    ids = [attrs["id"] for _, attrs in reader.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {attrs["href"] for tag, attrs in reader.tags if tag == "a"} <= {f"#{name}" for name in ids}


def test_the_page_escapes_labels_and_embedded_json(small: FakePlan):
    plan = without_figures(with_files(renamed(small, EVIL)))
    shown = rendered(plan, scores_of(plan))
    reader = read_html(shown)
    assert "img" not in {tag for tag, _ in reader.tags}
    assert sum(tag == "script" for tag, _ in reader.tags) == 2
    assert embedded(shown)["cells"][f"{TABLE}/minilm/stsb"]["row"] == EVIL


def test_the_page_renders_to_the_same_text(site: tuple[FakePlan, pd.DataFrame, str]):
    plan, given, shown = site
    assert rendered(plan, given) == shown


def test_a_broken_or_edited_run_record_is_named(small: FakePlan):
    run = small.runs_of("unsup_simcse_distilbert")[0].artifact
    path = small.root / run.folder / "run.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}", encoding="utf-8")
    seal(small.root, run)
    path.write_text('{"curve": []}', encoding="utf-8")
    with pytest.raises(SembenchError, match=r"run\.json was changed after it was made"):
        rendered(without_figures(small), frame([]))
    path.write_text('{"run": ', encoding="utf-8")
    seal(small.root, run)
    with pytest.raises(SembenchError, match=r"run\.json is not a JSON mapping; delete it and run again"):
        rendered(without_figures(small), frame([]))


# ------------------------------------------------------------------------------------------------------------- checks


@pytest.mark.parametrize("key", [key for key in registry().views if registry().views[key].chosen.kind != "frame"])
def test_every_view_of_the_registry_is_sound(key: str):
    entry = registry().views[key]
    entry.chosen.plugin.check(entry.chosen.config, registry(), f"registry/{entry.folder}/{key}.yaml", key)


ROW = {"key": "r", "label": "R", "variant": "distilbert"}
CLAIM = {"text": "it holds", "better": "r", "worse": "r", "column": "c"}


def rows(**given: Any) -> dict[str, Any]:
    return {"groups": [{"heading": "H", "rows": [{**ROW, **given}]}]}


def columns(**given: Any) -> dict[str, Any]:
    return {"columns": [{"key": "c", "label": "C", **given}]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (columns(scales=["smal"]), "column 'c': scale 'smal' is not in the registry; did you mean 'small'"),
        (rows(scales=["ful"]), "row 'r': scale 'ful' .* did you mean 'full'"),
        ({"claims": [{**CLAIM, "scales": ["dem"]}]}, "claim 'it holds': scale 'dem' .* did you mean 'demo'"),
        ({"claims": [{**CLAIM, "column": "d"}]}, "claim 'it holds': column 'd' is not"),
        ({"claims": [{**CLAIM, "worse": "s"}]}, "claim 'it holds': row 's' is not"),
        (
            {
                "columns": [{"key": "c", "label": "C"}, {"key": "g", "label": "G", "gain_of": "c"}],
                "claims": [{**CLAIM, "column": "g"}],
            },
            "claim 'it holds': column 'g' holds gains, which have no items; name that of the scores",
        ),
        (columns(suite="stss"), "row 'r', column 'c': suite 'stss' .* did you mean 'sts'"),
        (columns(task="sts_b"), "task of suite sts 'sts_b' .* did you mean 'stsb'"),
        (columns(metric="spearmann"), "metric 'spearmann' .* did you mean 'spearman'"),
        (columns(metric="accuracy"), "metric of sts/stsb 'accuracy' is not"),
        (columns(split="tset"), "split of sts/stsb 'tset' .* did you mean 'test'"),
        (columns(aggregation="wmeans"), "aggregation of sts/stsb 'wmeans' .* did you mean 'wmean'"),
        (columns(subset="tests"), "subset of sts/stsb 'tests' .* did you mean 'test'"),
        (rows(variant="distilbertt"), "variant 'distilbertt' .* did you mean 'distilbert'"),
        (rows(variant="unsup_simcse"), "variant 'unsup_simcse' is only a base; name one that extends it"),
        (rows(readout="first_lasst"), "read-out 'first_lasst' .* did you mean 'first_last'"),
        (rows(readout="first_last.whitening_nly"), "transform 'whitening_nly' .* did you mean 'whitening_nli'"),
        (rows(paper="minilmm"), "row of registry/paper_values.csv 'minilmm' is not"),
        (rows(before="s"), "row 's' is not"),
        (rows(before="r"), "row 'r': it is compared with itself"),
        (rows(after="s"), "row 's' is not"),
        (rows(cells={"d": {"readout": "cls"}}), "row 'r', cells: column 'd' is not"),
        (rows(variant=None), "row 'r', column 'c': no variant is given; add the key 'variant'"),
        ({"columns": [{"key": "c", "label": "C"}] * 2}, "column 'c' is given twice"),
        ({"groups": [{"heading": "H", "rows": [ROW, ROW]}]}, "row 'r' is given twice"),
        (columns(gain_of="d"), "column 'c': column 'd' is not"),
    ],
)
def test_references_of_a_table_are_checked(given: dict[str, Any], message: str):
    with pytest.raises(SembenchError, match=message):
        scores.Scores.check(table(**given), registry(), "registry/tables/t.yaml", "t")  # type: ignore[arg-type]


def test_a_column_is_one_thing():
    like = {"same_as": "d", "replace": {"bert_base": "distilbert"}}
    given: dict[str, Any]
    for given in ({"mean_of": ["d"], "task": "stsb"}, {"mean_of": ["d"], "gain_of": "d"}, {**like, "readout": "cls"}):
        with pytest.raises(SembenchError, match="takes coordinates, same_as, mean_of or gain_of; keep one of them"):
            table(**columns(**given))
    with pytest.raises(SembenchError, match="'c' needs both same_as and replace, or neither; add the other"):
        table(**columns(same_as="d"))


def test_a_column_on_another_encoder_is_one_step_and_names_variants_that_there_are():
    first = {"key": "c", "label": "C"}
    like = {"label": "L", "replace": {"distil": "distal"}}
    check = functools.partial(scores.Scores.check, registry=registry(), where="t.yaml", key="t")  # type: ignore[arg-type]
    with pytest.raises(SembenchError, match=r"row 'r', column 'l': variant 'distalbert' .* did you mean 'distilbert'"):
        check(table(columns=[first, {"key": "l", "same_as": "c", **like}]))
    with pytest.raises(SembenchError, match="column 'm': same_as must name a column with coordinates of its own"):
        check(table(columns=[first, {"key": "l", "same_as": "c", **like}, {"key": "m", "same_as": "l", **like}]))
    with pytest.raises(SembenchError, match="column 'l': column 'e' is not"):
        check(table(columns=[first, {"key": "l", "same_as": "e", **like}]))


def test_a_mean_is_over_one_split():
    """What cross-validation gave and what was tested are not the same thing."""
    parts = [
        {"key": "c", "label": "C"},
        {"key": "d", "label": "D", "split": "dev"},
        {"key": "m", "label": "M", "mean_of": ["c", "d"]},
    ]
    with pytest.raises(SembenchError, match="column 'm': it is a mean over the splits dev and test; give its columns"):
        scores.Scores.check(table(columns=parts), registry(), "t.yaml", "t")  # type: ignore[arg-type]


def test_means_and_gains_are_one_step():
    parts = [
        {"key": "c", "label": "C"},
        {"key": "m", "label": "M", "mean_of": ["c"]},
        {"key": "g", "label": "G", "gain_of": "m"},
    ]
    check = functools.partial(scores.Scores.check, registry=registry(), where="t.yaml", key="t")  # type: ignore[arg-type]
    check(table(columns=parts))
    with pytest.raises(SembenchError, match="mean_of must name columns with coordinates of their own"):
        check(table(columns=[*parts, {"key": "n", "label": "N", "mean_of": ["m"]}]))
    with pytest.raises(SembenchError, match="gain_of must not name a gain, which 'g' is"):
        check(table(columns=[*parts, {"key": "n", "label": "N", "gain_of": "g"}]))


@pytest.mark.parametrize(
    ("row", "column", "message"),
    [("s", "c", "row of t 's' is not"), ("r", "d", "column of t 'd' is not")],
)
def test_paper_values_name_rows_and_columns_that_there_are(row: str, column: str, message: str):
    known = FakeRegistry(PROJECT)
    known.paper_values = (PaperValue("simcse", "t", row, column, 1.0, ""),)
    with pytest.raises(SembenchError, match=message):
        scores.Scores.check(table(), known, "t.yaml", "t")  # type: ignore[arg-type]
    figure = known.views[FIGURE].chosen
    known.paper_values = (PaperValue("simcse", FIGURE, row, column, 1.0, ""),)
    with pytest.raises(SembenchError, match="shows no numbers of a paper"):
        figure.plugin.check(figure.config, known, f"registry/figures/{FIGURE}.yaml", FIGURE)


@pytest.mark.parametrize(
    ("key", "old", "new", "message"),
    [
        (FIGURE, "variant: minilm,", "variant: miniml,", "point 'MiniLM': variant 'miniml' .* did you mean 'minilm'"),
        (FIGURE, "suite: geometry", "suite: geometri", "suite 'geometri' .* did you mean 'geometry'"),
        (
            FIGURE,
            "readout: cls, scales: [full]",
            "readout: cls, scales: [fulll]",
            "scale 'fulll' .* did you mean 'full'",
        ),
        ("simcse_figure_f1", "split: pdata", "split: pdato", "split of spectrum/stsb 'pdato' .* did you mean 'pdata'"),
        (
            "analogy_figure_loss",
            "variant: analogy_bert,",
            "variant: analogy_bret,",
            "variant 'analogy_bret' .* 'analogy_bert'",
        ),
        ("simcse_figure_2", "scales: [small]", "scales: [smal]", "scale 'smal' .* did you mean 'small'"),
    ],
)
def test_references_of_a_figure_are_checked(small: FakePlan, key: str, old: str, new: str, message: str):
    plan = rewritten(small, key, old, new, "figures")
    chosen = plan.registry.views[key].chosen
    with pytest.raises(SembenchError, match=message):
        chosen.plugin.check(chosen.config, plan.registry, f"registry/figures/{key}.yaml", key)


def test_columns_of_recipes_are_keys_of_recipes(small: FakePlan):
    plan = rewritten(small, "simcse_table_a1", "path: objective.temperature", "path: objektive.temperature")
    chosen = plan.registry.views["simcse_table_a1"].chosen
    with pytest.raises(SembenchError, match=r"key of a recipe 'objektive' .* did you mean 'objective'"):
        recipes.Recipes.check(chosen.config, plan.registry, "t.yaml", "simcse_table_a1")  # type: ignore[arg-type]


def test_planning_loads_no_heavy_library():
    code = (
        "import sys; from sembench.core.plugin import VIEWS\n"
        "for kind in VIEWS.modules: VIEWS.get(kind)\n"
        "heavy = {'torch', 'transformers', 'pandas', 'numpy', 'scipy', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=PROJECT)
