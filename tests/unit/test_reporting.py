"""Cells, tables, figures and the page, from the real registry and invented scores."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import pytest

from sembench.core.errors import SembenchError
from sembench.core.files import write_json
from sembench.registry.plan import Plan
from sembench.reporting import cells, figures, frames, page, tables
from sembench.results.records import records_frame

PROJECT = Path(__file__).resolve().parents[2]
TABLE, FIGURE = "simcse_table_5", "simcse_figure_3"
SPLITS = {"stsb": {"test": 1379, "dev": 1500}, "sickr": {"test": 4927}}


def project(folder: Path) -> Path:
    """Copy what reporting reads of the project to a folder of its own."""
    for name in ("registry", "report"):
        shutil.copytree(PROJECT / name, folder / name, dirs_exist_ok=True)
    return folder


def record(plan: Plan, run: str, readout: str, **given: Any) -> dict[str, Any]:
    spec = plan.run(run)
    line = {
        "run": run, "variant": spec.variant, "seed": spec.seed, "readout": readout, "suite": "sts", "task": "stsb",
        "subset": "", "split": "test", "aggregation": "all", "metric": "spearman", "value": 0.5, "n": 1379,
        "sample_hash": "a1b2c3d4e5f60718", "protocol": 1, "stage": 1, "device": "cpu", "precision": "fp32",
        "seconds": 3.5, "created": "2025-01-02T03:04:05+00:00",
    }  # fmt: skip
    return line | given


def scored(plan: Plan, values: dict[tuple[str, str], list[float]], **given: Any) -> list[dict[str, Any]]:
    """Return records of variants under read-outs, one value a seed."""
    return [
        record(plan, spec.id, readout, value=value, **given)
        for (variant, readout), of_seeds in values.items()
        for spec, value in zip(plan.specs_of(variant), of_seeds, strict=False)
    ]


def geometry(plan: Plan, points: dict[tuple[str, str], tuple[float, float]]) -> list[dict[str, Any]]:
    place = {"suite": "geometry", "split": "pdata", "sample_hash": "0f" * 8}
    return [
        record(plan, spec.id, readout, metric=metric, value=value, n=n, **place)
        for (variant, readout), (uniformity, alignment) in points.items()
        for spec in plan.specs_of(variant)
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
def small(tmp_path: Path) -> Plan:
    return Plan("small", root=project(tmp_path), papers=["simcse"])


@pytest.fixture
def full(tmp_path: Path) -> Plan:
    return Plan("full", root=project(tmp_path), seeds=[42, 43, 44], papers=["simcse"])


def frame_of(plan: Plan) -> pd.DataFrame:
    dev = scored(plan, STSB, split="dev", sample_hash="bb" * 8)
    return records_frame([*scored(plan, STSB), *dev, *geometry(plan, POINTS)])


def cell_of(built: Iterable[cells.Cell], row: str, column: str) -> cells.Cell:
    return next(cell for cell in built if (cell.row, cell.column) == (row, column))


# ------------------------------------------------------------------------------------------------------- cells


def test_there_is_one_cell_for_each_row_and_column_shown(small: Plan, full: Plan):
    for plan, columns in ((small, 9), (full, 8)):
        built = cells.build_cells(plan, TABLE, records_frame([]))
        assert len(built) == len(plan.rows(TABLE)) * columns
        assert [cell.row for cell in built[::columns]] == [row.row.key for row in plan.rows(TABLE)]


def test_a_cell_is_the_mean_over_seeds_in_table_units(small: Plan):
    cell = cell_of(cells.build_cells(small, TABLE, frame_of(small)), "unsup_distilbert_cls", "stsb")
    assert cell.status == "measured"
    assert cell.value == pytest.approx(54.0)
    assert cell.sd == pytest.approx(1.0)  # 53, 54, 55
    assert (cell.n_seeds, cell.n, cell.sample_hash) == (3, 1379, "a1b2c3d4e5f60718")
    assert cell.runs == tuple(spec.id for spec in small.specs_of("unsup_simcse_distilbert"))
    assert (cell.paper_value, cell.delta, cell.verdict, cell.reason) == (None, None, "", "")


def test_the_difference_to_a_paper_and_its_source(small: Plan):
    cell = cell_of(cells.build_cells(small, TABLE, frame_of(small)), "minilm", "stsb")
    assert (cell.value, cell.paper_value) == (pytest.approx(82.01), 82.03)
    assert cell.delta == pytest.approx(-0.02)
    assert (cell.verdict, cell.paper, cell.note) == ("matches", "mteb", "published in the MTEB paper; raw text")
    assert (cell.sd, cell.n_seeds) == (None, 1)


def all_columns(plan: Plan, variant: str, readout: str, runs: list[list[float]]) -> list[dict[str, Any]]:
    tasks = ["sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr"]
    return [
        record(plan, spec.id, readout, task=task, value=value, sample_hash=task)
        for spec, values in zip(plan.specs_of(variant), runs, strict=False)
        for task, value in zip(tasks, values, strict=True)
    ]


def test_the_average_is_of_rounded_columns_run_by_run(full: Plan):
    # Six columns of 70.004 round to 70.00 and one of 70.00: the mean of the rounded is 70, the rounded mean is not 70.
    lines = all_columns(full, "bert_base", "embed_last", [[0.70004] * 6 + [0.7]])
    cell = cell_of(cells.build_cells(full, TABLE, records_frame(lines)), "bert_base_first_last", "avg")
    assert cell.value == 70.0
    assert round((6 * 70.004 + 70) / 7, 4) != 70.0
    assert cell.n == 7 * 1379
    assert cell.paper_value == 56.70
    assert cell.delta == pytest.approx(13.30)
    assert cell.verdict == "above paper"


def test_the_average_over_seeds_is_the_mean_of_the_averages(full: Plan):
    # Seed averages 76, 77, 78. Paper 76.25: off by 0.75, within the tolerance of 1.
    lines = all_columns(full, "unsup_simcse_bert_base", "cls", [[0.76] * 7, [0.77] * 7, [0.78] * 7])
    cell = cell_of(cells.build_cells(full, TABLE, records_frame(lines)), "unsup_simcse_bert_base", "avg")
    assert (cell.value, cell.sd, cell.n_seeds) == (pytest.approx(77.0), pytest.approx(1.0), 3)
    assert cell.values == (pytest.approx(76.0), pytest.approx(77.0), pytest.approx(78.0))
    assert cell.verdict == "matches"


STS_TABLE = "analogy_table_sts"


def poolings(plan: Plan) -> list[dict[str, Any]]:
    """Return STS of BERT before and after, as the analogy paper's table has it: 20 and 61, 63 by [CLS]; 50 by mean."""
    return [
        *all_columns(plan, "bert_base", "cls", [[0.20] * 7]),
        *all_columns(plan, "bert_base", "mean", [[0.50] * 7]),
        *all_columns(plan, "analogy_bert", "cls", [[0.61] * 7, [0.63] * 7]),
    ]


def test_a_gain_is_what_training_added(tmp_path: Path):
    plan = Plan("full", root=project(tmp_path), seeds=[1, 2])
    built = cells.build_cells(plan, STS_TABLE, records_frame(poolings(plan)))
    gain = cell_of(built, "bert_cls_tuned", "gain")
    # (61 + 63) / 2 - 20, and the spread of 41 and 43.
    assert (gain.value, gain.n_seeds) == (pytest.approx(42.0), 2)
    assert gain.sd == pytest.approx(2**0.5)
    assert (gain.paper_value, gain.delta) == (43.6, pytest.approx(-1.6))
    assert "62.52 - 18.63 = 43.89" in gain.note
    assert cell_of(built, "bert_cls", "gain").reason == "a gain needs an encoder before it, and this is the first"
    # Measured before, not after: no gain, but a failure to look into.
    assert cell_of(built, "bert_mean_tuned", "gain").status == "failed"
    assert cell_of(built, "roberta_cls_tuned", "gain").reason == "no value of RoBERTa"


def test_the_row_nearest_to_a_printed_number_is_named(tmp_path: Path):
    plan = Plan("full", root=project(tmp_path), seeds=[1, 2])
    text = tables.render_markdown(tables.table_view(plan, STS_TABLE, records_frame(poolings(plan))))
    assert "Nearest to the printed 18.63 (Avg.), and so the paper-like setting: BERT under cls, 20.00" in text
    assert "Nearest to the printed 62.52" not in text  # only one row was measured, which is no choice


def test_a_lost_number_says_so(tmp_path: Path):
    plan = Plan("full", root=project(tmp_path), seeds=[1])
    built = cells.build_cells(plan, "analogy_table_mrpc", records_frame([]))
    assert {(cell.paper_value, cell.note) for cell in built} == {(None, plan.table("analogy_table_mrpc").lost)}
    for key, shown in (("analogy_table_mrpc", "keeps no number of it"), (STS_TABLE, "one average before and after")):
        assert shown in tables.render_html(tables.table_view(plan, key, records_frame([])), plan.root)


def test_an_average_names_the_parts_that_are_missing(small: Plan):
    cell = cell_of(cells.build_cells(small, TABLE, frame_of(small)), "minilm", "avg")
    assert (cell.status, cell.value, cell.runs) == ("missing", None, ())
    assert cell.reason.endswith("STS12, STS13, STS14, STS15, STS16, SICK-R")


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
def test_verdicts(small: Plan, delta: float | None, sd: float | None, expected: str):
    assert cells.verdict(delta, sd, small.table(TABLE)) == expected


def test_missing_rows_tasks_and_readouts_tell_why(small: Plan):
    built = cells.build_cells(small, TABLE, frame_of(small))
    flow = cell_of(built, "bert_flow", "stsb")
    assert (flow.status, flow.reason, flow.paper_value) == ("missing", "normalising flows are not built yet", 68.66)
    task = cell_of(built, "minilm", "sts12")
    assert task.status == "missing"
    assert task.reason.startswith("data set sts12: needs a mirror folder")


def test_a_readout_that_an_encoder_lacks_is_missing(tmp_path: Path):
    root = project(tmp_path)
    path = root / "registry" / "tables" / f"{TABLE}.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("variant: glove_6b_50d, scales", "variant: glove_6b_50d, readout: cls, scales"), encoding="utf-8"
    )
    built = cells.build_cells(Plan("small", root=root), TABLE, records_frame([]))
    cell = cell_of(built, "glove_6b_50d", "stsb")
    assert (cell.status, cell.reason) == ("missing", "read-out cls is not offered by encoders of kind static")


def test_failed_runs_and_failed_seeds(small: Plan):
    lines = scored(small, {("unsup_simcse_distilbert", "cls"): [0.5, 0.6]})
    built = cells.build_cells(small, TABLE, records_frame(lines))
    partly = cell_of(built, "unsup_distilbert_cls", "stsb")
    assert (partly.status, partly.n_seeds, partly.reason) == ("measured", 2, "1 of 3 seeds failed")
    assert partly.value == pytest.approx(55.0)
    whole = cell_of(built, "unsup_distilbert_first_last", "stsb")
    assert (whole.status, whole.value, whole.n_seeds, whole.reason) == ("failed", None, 0, "3 of 3 seeds failed")
    assert whole.runs == tuple(spec.id for spec in small.specs_of("unsup_simcse_distilbert_first_last"))
    assert cell_of(built, "minilm", "stsb").status == "failed"


def test_cells_from_different_data_are_refused(small: Plan):
    lines = scored(small, STSB)
    lines[-1]["sample_hash"] = "ffff"
    with pytest.raises(SembenchError, match="cells from different data"):
        cells.build_cells(small, TABLE, records_frame(lines))


def test_claims(small: Plan):
    held, fallen, untested = cells.claims(small, TABLE, cells.build_cells(small, TABLE, frame_of(small)))
    assert (held.holds, held.better, held.worse) == (True, pytest.approx(54.0), pytest.approx(29.0))
    assert (held.difference, held.n_seeds) == (pytest.approx(25.0), 3)
    assert (fallen.holds, fallen.difference) == (False, pytest.approx(51.0 - 54.9))
    assert (untested.holds, untested.difference) == (None, None)
    assert untested.reason == "SimCSE-DistilBERT (trained through first-last): 3 of 3 seeds failed"


# ------------------------------------------------------------------------------------------------------ tables


def test_the_csv_is_the_long_form(small: Plan):
    lines = tables.render_csv(tables.table_view(small, TABLE, frame_of(small))).splitlines()
    assert lines[0] == ("table,row,row_label,column,value,sd,n_seeds,paper_value,delta,verdict,status,runs,reason")
    runs = " ".join(spec.id for spec in small.specs_of("unsup_simcse_distilbert"))
    assert f"{TABLE},unsup_distilbert_cls,SimCSE-DistilBERT ([CLS]),stsb,54.0,1.0,3,,,,measured,{runs}," in lines
    assert f"{TABLE},bert_flow,BERT-base-flow,stsb,,,0,68.66,,,missing,,normalising flows are not built yet" in lines


def test_csv_numbers_have_two_decimals_more_than_the_table(small: Plan):
    lines = scored(small, {("minilm", "mean"): [0.82013579]})
    frame = cells.table_frame(cells.build_cells(small, TABLE, records_frame(lines)))
    row = frame[(frame["row"] == "minilm") & (frame["column"] == "stsb")].iloc[0]
    assert (row["value"], row["delta"]) == (82.0136, -0.0164)


def test_markdown_shows_both_numbers_spread_note_and_shared_footnotes(small: Plan):
    text = tables.render_markdown(tables.table_view(small, TABLE, frame_of(small)))
    assert f"> **{small.scale.note}**" in text
    assert "| 82.01 (82.03) |" in text
    assert "| **SimCSE-DistilBERT (\\[CLS\\])** | \\[CLS\\] |" in text
    assert "| 54.00 ± 1.00 |" in text
    assert "– (68.66)" in text
    assert len(re.findall(r"^- <sup>\w+</sup> whitening is not built yet$", text, flags=re.M)) == 1
    marks = re.findall(r"whitening<sup>(\w+)</sup>", text)
    assert len(marks) == 4
    assert len(set(marks)) == 1
    columns = [line.count(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert set(columns) == {10}


def test_latex_escapes_what_means_something_to_it():
    assert tables.latex_escape(r"50% & a_b #1 {x} $y ~^\ [0]") == (
        r"50\% \& a\_b \#1 \{x\} \$y \textasciitilde{}\textasciicircum{}\textbackslash{} {[}0{]}"
    )


def rename(plan_root: Path, label: str) -> Plan:
    """Give one row of the table another label."""
    path = plan_root / "registry" / "tables" / f"{TABLE}.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("label: all-MiniLM-L6-v2 (mean)", f"label: {json.dumps(label)}"), encoding="utf-8")
    return Plan("small", root=plan_root)


def test_latex_is_booktabs_with_groups_and_escaped_labels(tmp_path: Path):
    plan = rename(project(tmp_path), "A & B_1 #2 100%")
    text = tables.render_latex(tables.table_view(plan, TABLE, frame_of(plan)))
    assert r"A \& B\_1 \#2 100\% & mean &" in text
    assert r"\multicolumn{11}{l}{\textit{Supervised models}} \\" in text
    assert r"54.00 $\pm$ 1.00" in text
    assert "(82.03)" in text
    for line in text.splitlines():
        assert re.sub(r"\\.", "", line).count("&") in (0, 10)
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    assert all(rf"\{rule}rule" in text for rule in ("top", "mid", "bottom"))


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


def read_html(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


EVIL = "</script><script>alert('x')</script><img src=x onerror=alert(1)>"


def test_html_escapes_labels(tmp_path: Path):
    plan = rename(project(tmp_path), EVIL)
    reader = read_html(tables.render_html(tables.table_view(plan, TABLE, frame_of(plan)), plan.root))
    assert {"script", "img", "button"}.isdisjoint(tag for tag, _ in reader.tags)
    assert EVIL in reader.text
    assert plan.scale.note in reader.text


def test_a_table_is_written_in_four_forms(small: Plan):
    paths = tables.write_table(small, TABLE, frame_of(small))
    folder = small.root / "results" / "small" / "tables"
    assert paths == [folder / f"{TABLE}.{suffix}" for suffix in ("csv", "md", "tex", "html")]
    assert sorted(folder.iterdir()) == sorted(paths)


def test_a_reason_that_only_one_cell_has_is_marked_there(small: Plan):
    lines = scored(small, STSB) + scored(
        small, {("unsup_simcse_distilbert", "cls"): [0.5]}, split="dev", sample_hash="bb"
    )
    view = tables.table_view(small, TABLE, records_frame(lines))
    letters = {reason: mark for mark, reason in view.reasons}
    row = next(row for _, rows in view.groups for row in rows if row.label.text == "SimCSE-DistilBERT ([CLS])")
    assert row.label.mark == ""
    assert {cell.column: mark for cell, mark in row.cells if mark} == {"stsb_dev": letters["2 of 3 seeds failed"]}


# ----------------------------------------------------------------------------------------------------- figures


def test_the_figure_csv_holds_the_records(small: Plan):
    figures.write_figure(small, FIGURE, frame_of(small))
    frame = pd.read_csv(small.root / small.layout.figure(FIGURE, "csv"))
    assert list(frame.columns) == [
        "figure", "label", "run", "readout", "uniformity", "alignment", "colour", "n_positives", "n_sentences",
        "splits", "status", "reason",
    ]  # fmt: skip
    lines = frame[frame["label"] == "SimCSE-DistilBERT [CLS]"]
    assert lines["run"].tolist() == [spec.id for spec in small.specs_of("unsup_simcse_distilbert")]
    assert lines["uniformity"].tolist() == [-1.9] * 3
    assert lines["alignment"].tolist() == [0.3] * 3
    assert lines["colour"].tolist() == [0.53, 0.54, 0.55]
    assert set(lines["n_positives"]) == {338}
    assert set(lines["n_sentences"]) == {2900}
    assert set(lines["splits"]) == {"dev+test"}
    failed = frame[frame["label"] == "DistilBERT first-last"].iloc[0]
    assert (failed["status"], failed["reason"]) == ("failed", "no score of uniformity, alignment")


def test_a_figure_renders_to_the_same_bytes(small: Plan):
    scores = frame_of(small)
    paths = figures.write_figure(small, FIGURE, scores)
    first = {path: path.read_bytes() for path in paths}
    assert {path.suffix for path in paths} == {".svg", ".pdf", ".png", ".csv"}
    figures.write_figure(small, FIGURE, scores)
    assert first == {path: path.read_bytes() for path in paths}
    svg = first[small.root / small.layout.figure(FIGURE, "svg")].decode()
    assert "SimCSE-DistilBERT [CLS]" in svg
    assert "dc:date" not in svg
    assert " ".join(small.scale.note.split()[:3]) in svg


def test_labels_cover_neither_each_other_nor_the_axes(small: Plan):
    drawing, _, _ = figures.rendered(small, FIGURE, frame_of(small))
    axes = drawing.axes[0]
    labels = [text for text in axes.texts if text.get_text()]
    assert {text.get_text() for text in labels} == {"DistilBERT [CLS]", "SimCSE-DistilBERT [CLS]", "MiniLM"}
    boxes = [text.get_window_extent() for text in labels]
    frame = axes.get_window_extent()
    for i, box in enumerate(boxes):
        assert frame.x0 <= box.x0 < box.x1 <= frame.x1
        assert frame.y0 <= box.y0 < box.y1 <= frame.y1
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])


def test_a_figure_without_any_score_is_still_drawn(small: Plan):
    assert len(figures.write_figure(small, FIGURE, records_frame([]))) == 4


def test_training_curves_come_from_the_runs_own_records(small: Plan):
    key, variant = "analogy_figure_loss", "analogy_distilbert"
    plan = Plan("small", root=small.root)
    wanted = next(p for p in plan.figure(key).points if p.variant == variant)
    with mock.patch.object(Plan, "run_missing", return_value=None):
        first, second = plan.specs_of(variant)[:2]
        for spec, loss in ((first, -3.0), (second, -4.0)):
            curve = [
                {"step": 0, "loss": None, "dev": 0.29},
                {"step": 5, "loss": loss, "dev": 0.4, "cross_cosine": 0.9, "own_cosine": 0.9},
            ]
            write_json(plan.root / plan.layout.run(spec.id) / "run.json", {"run": spec.id, "curve": curve})
        drawing, frame, absent = figures.rendered(plan, key, records_frame([]))
    assert len(drawing.axes) == 4
    assert frame[frame["step"] == 5]["loss"].tolist() == [-3.0, -4.0]
    assert set(frame["label"]) == {wanted.label}
    assert absent["e1 - e2, cross-relation"] == "not trained"
    lines = drawing.axes[3].get_lines()
    assert [[round(float(y), 9) for y in line.get_ydata()] for line in lines] == [[29.0, 40.0]] * 2
    # Free vectors have a row of their own, without a dev score.
    free = pd.DataFrame({"label": "free", "step": [0, 10], "loss": [8.0, 1.0], "own_cosine": 0.1, "cross_cosine": 0.0})
    (plan.root / plan.layout.study(key)).parent.mkdir(parents=True)
    free.to_csv(plan.root / plan.layout.study(key), index=False)
    with mock.patch.object(Plan, "run_missing", return_value=None):
        drawing, frame, _ = figures.rendered(plan, key, records_frame([]))
    assert [axes.get_visible() for axes in drawing.axes] == [True, True, True, False, *[True] * 4]
    assert drawing.axes[0].get_lines()[0].get_ydata().tolist() == [8.0, 1.0]
    assert set(frame["run"]) == {first.id, second.id, figures.FREE}


def test_a_data_sets_table_shows_its_columns_in_four_forms(small: Plan):
    frame = pd.DataFrame({"relation": ["E01", "E01", "L02"], "name": ["a:b", "a:b", "c_d:e&f"], "word_pairs": [1, 2, 3],
                          "found": [1, 1, 1], "kept": [1, 1, 1], "definition_pairs": [4, 5, 6]})  # fmt: skip
    path = small.root / small.layout.analogy("sizes.csv")
    path.parent.mkdir(parents=True)
    frame.to_csv(path, index=False)
    texts = {path.suffix: path.read_text() for path in frames.write_frame(small, "analogy_table_2")}
    assert texts[".csv"].splitlines()[0] == "Id,Relation,Word pairs,Both found,Kept,Definition pairs"
    assert "L02,c_d:e&f,3,1,1,6" in texts[".csv"]
    # For people words of several parts are written as words.
    assert r"c d:e\&f" in texts[".tex"]
    assert "| L02 | c d:e&f | 3 | 1 | 1 | 6 |" in texts[".md"]
    assert "<td>c d:e&amp;f</td>" in texts[".html"]
    spec = small.registry.frames["analogy_table_2"].model_copy(update={"per_relation": 1, "relations": ["E01"]})
    assert frames.shown_frame(spec, path)["Definition pairs"].tolist() == [4]
    frame.drop(columns="kept").to_csv(path, index=False)
    with pytest.raises(SembenchError, match="lacks the column 'kept'"):
        frames.write_frame(small, "analogy_table_2")


def test_a_curve_may_lack_anything():
    assert figures.training_chart({}) is None
    assert figures.training_chart({"curve": [{"step": 0}], "losses": []}) is None
    assert figures.training_chart({"curve": [{"step": 0, "dev": 0.3}]}) is not None
    long = figures.training_chart({"losses": [1.0, 3.0] * 2000})
    assert long is not None
    (line,) = long.axes[0].lines
    assert len(line.get_ydata()) == 400
    assert set(line.get_ydata()) == {2.0}  # each point is the mean of five pairs


# -------------------------------------------------------------------------------------------------------- page


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


def with_files(plan: Plan) -> Plan:
    """Write a run.json and a manifest as training and fetching do."""
    run = plan.root / plan.layout.run(plan.specs_of("unsup_simcse_distilbert")[0].id) / "run.json"
    manifest = plan.root / "results" / "data" / "sets" / "sts_benchmark" / "manifest.json"
    fetched = {
        "source": {"kind": "pypi", "origin": "some-package==1.0.3"},
        "files": [{"name": "dev.csv", "sha256": "12" * 32, "bytes": 10, "rows": 1500}],
        "fetched": "2025-01-01T00:00:00+00:00",
    }
    for path, value in ((run, RUN), (manifest, fetched)):
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(value), encoding="utf-8")
    return plan


def embedded(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="provenance-data">(.*?)</script>', text, flags=re.S)
    assert found
    return json.loads(found[1], parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_every_cell_has_its_provenance_on_the_page(small: Plan):
    text = page.write_page(with_files(small), frame_of(small)).read_text(encoding="utf-8")
    known = embedded(text)
    built = cells.build_cells(small, TABLE, frame_of(small))
    assert set(known["cells"]) == {f"{TABLE}/{cell.row}/{cell.column}" for cell in built}
    buttons = [attrs["data-cell"] for tag, attrs in read_html(text).tags if tag == "button" and "data-cell" in attrs]
    assert sorted(buttons) == sorted(f"{cell.row}/{cell.column}" for cell in built)
    entry = known["cells"][f"{TABLE}/unsup_distilbert_cls/stsb"]
    assert [line["value"] for line in entry["records"]] == [0.53, 0.54, 0.55]
    assert {line["precision"] for line in entry["records"]} == {"fp32"}
    run = small.specs_of("unsup_simcse_distilbert")[0]
    assert entry["records"][0]["file"] == str(small.scores(run.id, "sts"))
    assert known["runs"][run.id]["recipe"]["recipe"]["learning_rate"] == 3e-4
    assert known["runs"][run.id]["run"]["versions"]["torch"] == "2.13.0"
    assert known["runs"][run.id]["run"]["best"] == {"step": 40, "dev": None}
    assert known["runs"][run.id]["data"]["licence"]
    assert all(name in known["runs"] for cell in built for name in cell.runs)


def test_an_average_shows_the_records_of_its_parts(full: Plan):
    lines = all_columns(full, "bert_base", "embed_last", [[0.7] * 7])
    known = embedded(page.render_page(full, records_frame(lines)))
    entry = known["cells"][f"{TABLE}/bert_base_first_last/avg"]
    assert len(entry["records"]) == 7
    assert entry["metric"] == "mean of STS12, STS13, STS14, STS15, STS16, STS-B, SICK-R, each rounded first"


def test_the_page_stands_alone_and_says_what_it_is(small: Plan):
    text = page.render_page(with_files(small), frame_of(small))
    reader = read_html(text)
    for tag, attrs in reader.tags:
        for name in ("src", "href", "xlink:href"):
            assert (attrs.get(name) or "#").startswith(("#", "data:")), (tag, attrs)
    assert "url(http" not in text
    assert "@import" not in text
    for told in (
        small.scale.note,
        "does not hold",
        "cannot be tested",
        "scale=small",
        "some-package==1.0.3",
        "seed 42",
    ):
        assert told in reader.text
    assert "some-machine" not in text
    ids = [attrs["id"] for _, attrs in reader.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {attrs["href"] for tag, attrs in reader.tags if tag == "a"} <= {f"#{name}" for name in ids}


def test_the_page_escapes_labels_and_embedded_json(tmp_path: Path):
    plan = with_files(rename(project(tmp_path), EVIL))
    text = page.render_page(plan, frame_of(plan))
    reader = read_html(text)
    assert "img" not in {tag for tag, _ in reader.tags}
    assert sum(tag == "script" for tag, _ in reader.tags) == 2
    assert embedded(text)["cells"][f"{TABLE}/minilm/stsb"]["row"] == EVIL


def test_the_page_renders_to_the_same_text(small: Plan):
    scores = frame_of(with_files(small))
    assert page.render_page(small, scores) == page.render_page(small, scores)


def test_a_broken_run_record_is_named(small: Plan):
    path = small.root / small.layout.run(small.specs_of("unsup_simcse_distilbert")[0].id) / "run.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"run": ', encoding="utf-8")
    with pytest.raises(SembenchError, match=r"run\.json is not a JSON mapping; delete it and run again"):
        page.render_page(small, frame_of(small))
