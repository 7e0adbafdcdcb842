"""The graph: what runs, what does not run again, and what every rule must say of itself. Dry runs only."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from pathlib import Path

import pytest
import yaml

from sembench.registry import Plan
from tests.conftest import ROOT, run_snakemake

SCALES = ("smoke", "demo", "small", "full")
QUIET = ("-n", "--quiet", "rules", "--cores", "2")


def jobs(folder: Path, *arguments: str, **environment: str) -> dict[str, int]:
    """Return how many jobs of each rule a dry run would start."""
    result = run_snakemake(folder, *arguments, "-n", "--cores", "2", **environment)
    assert result.returncode == 0, result.stderr[-3000:]
    text = result.stdout + result.stderr
    if "Nothing to be done" in text:
        return {}
    table = text.split("Job stats:")[1].split("total")[0]
    return {name: int(count) for name, count in re.findall(r"^(\w+)\s+(\d+)$", table, flags=re.MULTILINE)}


@pytest.mark.parametrize("scale", SCALES)
def test_everything_can_be_planned_without_a_network(project: Path, scale: str) -> None:
    start = time.monotonic()
    found = jobs(project, "all", "--config", f"scale={scale}")
    assert found["report"] == found["collect_scores"] == 1
    assert found["simcse_table_5"] == found["simcse_figure_3"] == 1
    assert time.monotonic() - start < 60


def test_the_full_scale_trains_every_variant_of_the_table_for_every_seed(project: Path) -> None:
    found = jobs(project, "simcse_table_5", "--config", "scale=full")
    assert found["train_contrastive"] == 3 * 5
    assert found["score_run"] == 3 * 5 + 3
    found = jobs(project, "simcse_table_5", "--config", "scale=full", "seeds=[1,2]")
    assert found["train_contrastive"] == 3 * 2


def test_one_table_needs_nothing_of_the_figure(project: Path) -> None:
    found = jobs(project, "simcse_table_5", "--config", "scale=demo")
    assert "simcse_figure_3" not in found
    assert "report" not in found
    assert found["train_contrastive"] == 2


def test_a_chosen_paper_is_built_alone(project: Path) -> None:
    found = jobs(project, "all", "--config", "scale=demo", "papers=simcse")
    assert found["train_contrastive"] == 2
    assert not [name for name in found if "analogy" in name or "dsbats" in name or "wordnet" in name]
    assert "fetch_gcide" not in jobs(project, "fetch", "--config", "scale=demo", "papers=simcse")


def test_the_analogy_paper_needs_packages_only(project: Path) -> None:
    found = jobs(project, "analogy", "--config", "scale=demo", SEMBENCH_MIRROR="")
    assert found["fetch_mini_bats"] == found["build_dsbats_sn"] == found["build_dsbats4cl"] == 1
    assert "fetch_bats" not in found


def test_one_method_on_top_of_the_other_trains_both_first(project: Path) -> None:
    found = jobs(project, "beyond", "--config", "scale=demo")
    # SimCSE, DSBATS4CL, DefSent, and each of the first two on top of the other.
    assert found["train_contrastive"] == 5
    assert found["score_run"] == 2 * 6
    chained = Plan.from_config({"scale": "demo"}, project).spec("analogy_on_simcse_distilbert", 42)
    found = jobs(project, f"results/demo/runs/{chained.id}/run.json", "--config", "scale=demo")
    assert found["train_contrastive"] == 2


def test_fetch_only_fetches(project: Path) -> None:
    found = jobs(project, "fetch", "--config", "scale=demo")
    assert {name for name in found if not name.startswith("fetch")} == set()
    assert found["fetch_sts_benchmark"] == 1
    assert "fetch_wiki_1m" not in found


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ("scale=dmeo", "scale 'dmeo' is not in registry/scales.yaml; did you mean 'demo'?"),
        ("sede=3", "key 'sede' is not in config.yaml; did you mean 'seeds'?"),
        ("seeds=3", "'seeds' must be a list of whole numbers"),
        ("relations={E07: 1}", "'relations' must be a list such as [E06, E07, L04, L09]"),
        ("relations=[E06,E06]", "'relations' names E06 twice; name it once"),
        ("relations=[E99]", "relation 'E99' is not in registry/relations.yaml; did you mean 'E0"),
        ("relations=I01", "relation I01 has no filter in registry/relations.yaml; add source and target"),
        ("srsd_pairs=nowhere.tsv", "nowhere.tsv'; mend the key 'srsd_pairs'"),
        ("partial=no", "'partial' must be true or false, not 'no'"),
        ("seeds=[99999999999999999999999]", "'seeds' must be a list of whole numbers"),
        ("inventory=dump", "'inventory: dump' and 'dump: FILE' belong together"),
        ("inventory=wordnett", "inventory 'wordnett' is not in config.yaml; did you mean 'wordnet'?"),
        ("mirror=/nowhere/at/all", "the mirror folder '/nowhere/at/all' does not exist"),
    ],
)
def test_a_wrong_configuration_is_one_sentence(project: Path, config: str, sentence: str) -> None:
    result = run_snakemake(project, *QUIET, "--config", config, SEMBENCH_MIRROR="")
    assert result.returncode != 0
    assert sentence in result.stdout + result.stderr
    assert "Traceback" not in result.stdout + result.stderr


def test_an_unknown_variant_in_a_table_is_one_sentence(project: Path) -> None:
    path = project / "registry/tables/simcse_table_5.yaml"
    path.write_text(path.read_text().replace("variant: bert_tiny", "variant: bert_tny"))
    result = run_snakemake(project, *QUIET, "--config", "scale=demo")
    assert result.returncode != 0
    assert (
        "row 'bert_tiny': variant 'bert_tny' is not in the registry; did you mean 'bert_tiny'?"
        in result.stdout + result.stderr
    )
    assert "Traceback" not in result.stdout + result.stderr


# -------------------------------------------------------------------------------------------- rules as documentation

STAGES = ("sources", "corpora", "analogy", "train", "score", "collect", "tables", "figures", "report")
GROUPS = {"all", "fetch", "tables", "figures", "simcse", "analogy", "beyond"}
# Free vectors are made, not read.
WITHOUT_INPUT = {"study_objective"}


def rule_bodies() -> dict[str, str]:
    found = {}
    for stage in STAGES:
        text = (ROOT / "rules" / f"{stage}.smk").read_text()
        for number, part in enumerate(re.split(r"^\s*rule\b ?", text, flags=re.MULTILINE)[1:]):
            name = re.match(r"(\w+):", part)
            found[name[1] if name else f"{stage}_{number}"] = part
    return found


def test_every_rule_says_what_it_does() -> None:
    bodies = {name: body for name, body in rule_bodies().items() if name not in GROUPS}
    assert len(bodies) >= 8
    for name, body in bodies.items():
        for word in (
            "input:",
            "output:",
            "log:",
            "benchmark:",
            "message:",
            "threads:",
            "resources:",
            "mem_mb=",
            "runtime=",
        ):
            free = word == "input:" and (name.startswith("sources") or name in WITHOUT_INPUT)
            assert word in body or free, f"rule {name} lacks {word}"
        assert not re.search(r"^ +run:", body, flags=re.MULTILINE)
        assert "protected(" not in body


def test_every_script_belongs_to_a_rule() -> None:
    rules = "".join((ROOT / "rules" / f"{stage}.smk").read_text() for stage in STAGES)
    for script in (ROOT / "workflow_scripts").glob("*.py"):
        assert f"workflow_scripts/{script.name}" in rules


def test_profiles_repeat_what_a_replaced_default_would_lose() -> None:
    """A workflow profile replaces profiles/default whole, so each one says that code is no trigger."""
    for path in (ROOT / "profiles").glob("*/profile.yaml"):
        profile = yaml.safe_load(path.read_text())
        assert "code" not in profile["rerun-triggers"], path
        assert profile["rerun-incomplete"] is True, path
        if path.parent.name not in ("default", "local-gpu"):
            # The counter is global: set in a cluster profile it would throttle all submissions.
            assert not any(str(r).startswith("gpu") for r in profile.get("resources", [])), path


# ------------------------------------------------------------------------------------- what runs again, what does not


@pytest.mark.workflow
class TestFinished:
    """Tests on a finished run; they leave it finished."""

    def test_outputs_are_all_there(self, finished: Path) -> None:
        base = finished / "results/smoke"
        for suffix in ("csv", "md", "tex", "html"):
            assert (base / f"tables/simcse_table_5.{suffix}").stat().st_size > 100
        for suffix in ("svg", "pdf", "png", "csv"):
            assert (base / f"figures/simcse_figure_3.{suffix}").stat().st_size > 100
        assert "</html>" in (base / "report/index.html").read_text()
        assert not list(finished.glob("results/**/.*.partial")) + list(finished.glob("results/*/checkpoints/*/*"))

    def test_a_second_run_does_nothing(self, finished: Path) -> None:
        start = time.monotonic()
        assert jobs(finished, "all", "--config", "scale=smoke") == {}
        assert time.monotonic() - start < 20

    def test_touching_and_reformatting_code_runs_nothing(self, finished: Path) -> None:
        for path in [*finished.glob("sembench/**/*.py"), *finished.glob("workflow_scripts/*.py")]:
            text = path.read_text()
            future = "from __future__ import annotations\n"
            path.write_text(text.replace(future, f"{future}\n\n# a comment\n", 1) + "\n\n# the end\n")
            os.utime(path)
        assert jobs(finished, "all", "--config", "scale=smoke") == {}

    def test_another_mirror_fetches_nothing_again(self, finished: Path, tmp_path: Path) -> None:
        assert jobs(finished, "all", "--config", "scale=smoke", SEMBENCH_MIRROR=str(tmp_path)) == {}

    def test_editing_one_variant_retrains_that_one_only(self, finished: Path) -> None:
        path = finished / "registry/variants.yaml"
        before = path.read_text()
        try:
            path.write_text(before.replace("recipe: {learning_rate: 2.0e-4,", "recipe: {learning_rate: 2.5e-4,"))
            assert path.read_text() != before
            found = jobs(finished, "all", "--config", "scale=smoke")
            assert found["train_contrastive"] == found["score_run"] == 1
            assert not [name for name in found if name.startswith(("fetch", "build"))]
        finally:
            path.write_text(before)
        assert jobs(finished, "all", "--config", "scale=smoke") == {}

    def test_editing_the_page_renders_it_and_trains_nothing(self, finished: Path) -> None:
        path = finished / "sembench/reporting/tables.py"
        before = path.read_text()
        try:
            path.write_text(before + "\n\nANOTHER_CONSTANT = 1\n")
            found = jobs(finished, "all", "--config", "scale=smoke")
            assert {"report", "simcse_table_5", "simcse_figure_3"} <= set(found)
            assert not [name for name in found if name.startswith(("train", "score", "fetch", "build", "collect"))]
        finally:
            path.write_text(before)

    def test_lost_metadata_keeps_runs_apart_by_name(self, finished: Path, tmp_path: Path) -> None:
        folder = shutil.copytree(finished, tmp_path / "copy", symlinks=True)
        shutil.rmtree(folder / ".snakemake")
        path = folder / "registry/variants.yaml"
        path.write_text(path.read_text().replace("recipe: {learning_rate: 2.0e-4,", "recipe: {learning_rate: 2.5e-4,"))
        assert jobs(folder, "all", "--config", "scale=smoke")["train_contrastive"] == 1

    def test_a_run_describes_itself(self, finished: Path) -> None:
        [story] = [
            json.loads(p.read_text()) for p in finished.glob("results/smoke/runs/unsup_simcse_distilbert.s1.*/run.json")
        ]
        assert story["run"].startswith("unsup_simcse_distilbert.s1.")
        assert story["spec"]["recipe"]["batch_size"] == 8
        assert [point["step"] for point in story["curve"]] == [0, 3, 6]
        assert len(story["losses"]) == 6
        assert story["best"]["dev"] == max(point["dev"] for point in story["curve"][1:])
        assert {"loss", "dev", "alignment", "uniformity"} <= set(story["curve"][1])
        assert story["precision"] == "fp32"
        assert {"torch", "transformers", "python"} <= set(story["versions"])
        assert story["segments"][0]["sentences_per_second"] > 0
