"""The graph: what runs, what does not run again, and what every rule must say of itself. Dry runs only."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from sembench.core.artifact import opened
from sembench.core.errors import SembenchError
from sembench.data.build import make_dataset, make_shard
from sembench.evaluation.job import ensure
from sembench.plan import Plan
from sembench.plan.jobs import Jobs
from sembench.registry import load_registry
from tests.conftest import ROOT, copy_project, edit, run_snakemake

SCALES = ("smoke", "demo", "small", "full")
SMOKE = ("--config", "scale=smoke")


def jobs(folder: Path, *arguments: str, **environment: str) -> dict[str, int]:
    """Return how many jobs of each rule a dry run would start."""
    result = run_snakemake(folder, *arguments, "-n", "--cores", "2", **environment)
    assert result.returncode == 0, result.stderr[-3000:]
    text = result.stdout + result.stderr
    if "Nothing to be done" in text:
        return {}
    table = text.split("Job stats:")[1].split("total")[0]
    return {name: int(count) for name, count in re.findall(r"^(\w+)\s+(\d+)$", table, flags=re.MULTILINE)}


def wanted(target: str, scale: str, **options: object) -> set[str]:
    """Return the names of all artefacts that a table, figure or paper needs at a scale, without Snakemake."""
    plan = Plan(scale, root=ROOT, **options)
    views = plan.chosen_views(target) if target in ("simcse", "analogy", "beyond") else {target: plan.view(target)}
    needed = [artifact for view in views.values() for artifact in plan.artifacts(view.needs)]
    return {f"{artifact.kind} {artifact.name}" for artifact in plan.ancestors(needed)}


@pytest.fixture(autouse=True)
def _no_mirror(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SEMBENCH_MIRROR", raising=False)


# -------------------------------------------------------------------------------------------------------- what is planned


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_renders_every_table_and_figure_that_it_can_but_those_built_by_name(scale: str) -> None:
    plan = Plan(scale, root=ROOT)
    rendered = {path.name.partition(".")[0] for path in Jobs(plan).rendered() if path.parent.name != ".stamps"}
    assert rendered == {key for key, view in plan.views.items() if not (view.missing or view.by_name)}
    assert {"simcse_table_5", "simcse_figure_3", "analogy_table_7"} <= rendered


def test_the_full_scale_is_planned_without_a_network(project: Path) -> None:
    found = jobs(project, "simcse_table_5", "--config", "scale=full", "seeds=[1,2]")
    plan = Plan("full", root=ROOT, seeds=[1, 2])
    keys = plan.view("simcse_table_5").needs.scores
    trained = {key.run for key in keys if plan.run(key.run).trained}
    assert found["train"] == len(trained) == 6 * 2
    # One process an encoder, whatever the number of read-outs and tasks.
    assert found["score"] == len({key.run for key in keys}) < len(keys)
    assert found["simcse_table_5"] == 1
    assert "report" not in found


def test_a_table_waits_for_nothing_that_it_does_not_show(project: Path) -> None:
    found = jobs(project, "simcse_table_6", "--config", "scale=demo")
    assert not [name for name in found if "figure" in name or name in ("report", "simcse_table_5")]
    plan = Plan("demo", root=ROOT)
    assert found["train"] == len({k.run for k in plan.view("simcse_table_6").needs.scores if plan.run(k.run).trained})


def test_a_batch_is_what_the_command_asks_for() -> None:
    names = Jobs(Plan("demo", root=ROOT))
    assert names.batch_of("simcse_table_5", []) == "all"
    assert names.batch_of("simcse_table_5", ["all"]) == "all"
    assert names.batch_of("simcse_table_5", ["simcse_table_5"]) == "simcse_table_5"
    assert names.batch_of("simcse_table_5", ["simcse_table_6", "simcse_table_5"]) == "simcse_table_5+simcse_table_6"
    assert names.batch_of("simcse_table_5", ["results/demo/tables/simcse_table_5.csv"]) == "simcse_table_5"
    assert names.batch_of("simcse_table_5", ["simcse"]) == "simcse"
    only = Jobs(Plan("demo", root=ROOT, papers=["simcse"]))
    assert only.batch_of("analogy_table_7", ["analogy"]) == "analogy"
    assert only.batch_of(None, []) == "all"
    assert not {key.suite for key in only.plan.batch("all")} & {"srsd"}


def test_a_chosen_paper_is_built_alone() -> None:
    plan = Plan("demo", root=ROOT, papers=["simcse"])
    kinds = plan.wanted()
    assert not [a.name for a in [*kinds["made"], *kinds["dataset"]] if re.search("dsbats|bats|wordnet|gcide", a.name)]
    assert not Jobs(plan).published_files()
    assert not [run for run in kinds["run"] if not run.name.startswith("unsup_simcse")]


def test_the_analogy_paper_needs_packages_only() -> None:
    found = wanted("analogy", "demo")
    assert {"dataset mini_bats", "dataset wordnet", "made dsbats_sn", "made dsbats4cl"} <= found
    assert "dataset bats" not in found


def test_one_method_on_top_of_the_other_trains_both_first() -> None:
    found = {name for name in wanted("beyond", "demo") if name.startswith("run ")}
    # SimCSE, DSBATS4CL, DefSent, and each of the first two on top of the other.
    assert found == {
        f"run {variant}.s42"
        for variant in (
            "unsup_simcse_distilbert",
            "analogy_distilbert",
            "defsent_distilbert",
            "analogy_on_simcse_distilbert",
            "simcse_on_analogy_distilbert",
        )
    }


def test_fetch_only_fetches(project: Path) -> None:
    found = jobs(project, "fetch", "--config", "scale=demo")
    assert {name for name in found if not name.startswith("fetch")} == set()
    assert found["fetch_sts_benchmark"] == 1
    assert "fetch_wiki_1m_text" not in found


def test_a_wrong_configuration_and_a_wrong_registry_are_one_sentence(project: Path) -> None:
    """All of them are tried in test_plan.py; here is how Snakemake passes one on."""
    edit(project, "tables/simcse_table_5.yaml", lambda v: v["groups"][0]["rows"][0].update(variant="glove_6b"))
    for config, sentence in (("sede=3", "key 'sede'"), ("scale=demo", "variant 'glove_6b'")):
        result = run_snakemake(project, "-n", "--quiet", "rules", "--cores", "2", "--config", config)
        text = result.stdout + result.stderr
        assert result.returncode != 0
        assert "did you mean" in text
        assert sentence in text or "glove_6b" in text
        assert "Traceback" not in text


# -------------------------------------------------------------------------------------------------- rules as documentation

STAGES = ("sources", "data", "backbones", "train", "score", "views", "report")
GROUPS = {"all", "fetch", "tables", "figures", "simcse", "analogy", "beyond"}
WORDS = ("output:", "log:", "benchmark:", "message:", "threads:", "resources:", "mem_mb=", "runtime=")


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
        directives = re.findall(r"^ +(\w+:|\w+=)", body, flags=re.MULTILINE)
        for word in (*WORDS, *([] if name.startswith("sources") else ["input:"])):
            assert word in directives, f"rule {name} lacks {word}"
        # Both are written into a command line by Snakemake, unquoted: a blank in the project's path would end them.
        assert not {"run:", "script:"} & set(directives)
        assert "shell.prefix" not in body
        assert "protected(" not in body


def test_threads_are_those_of_the_scale_whatever_the_cores() -> None:
    """They decide the last bits of numbers; `{threads}` would be at most `--cores`."""
    # Each of the processes that train a run together computes with so many.
    together = "threads: lambda wildcards: PLAN.scale.threads * JOBS.processes(wildcards.run)\n"
    for name, threads in {"train": together, "score": "threads: PLAN.scale.threads\n"}.items():
        body = rule_bodies()[name]
        assert threads in body
        assert "{threads}" not in body


def test_rules_hand_over_names_and_never_text_of_the_registry() -> None:
    for name, body in rule_bodies().items():
        params = re.search(r"params:\n((?: +\w+=.*\n)+)", body)
        for line in params[1].splitlines() if params else []:
            assert re.fullmatch(r" +(name|key)=[\w.]+,", line), f"rule {name}: {line}"


def test_every_script_belongs_to_a_rule() -> None:
    rules = "".join((ROOT / "rules" / f"{stage}.smk").read_text() for stage in STAGES)
    for script in (ROOT / "workflow_scripts").glob("*.py"):
        assert f"workflow_scripts/{script.name}" in rules


def test_profiles_repeat_what_a_replaced_default_would_lose() -> None:
    """A workflow profile replaces profiles/default whole; names pin content, so time stamps of inputs are enough."""
    for path in (ROOT / "profiles").glob("*/profile.yaml"):
        profile = yaml.safe_load(path.read_text())
        assert not {"code", "params", "input"} & set(profile["rerun-triggers"]), path
        assert profile["rerun-incomplete"] is True, path
        # What a killed workflow leaves behind must not stop the next one, nor undo what its jobs finished after it.
        assert profile["ignore-incomplete"] is True, path
        assert profile["nolock"] is True, path
        assert "reason" in profile["quiet"], path
        # The counter is global: set in a cluster profile it would throttle all submissions, in another all machines.
        assert not any(str(r).startswith("gpu") for r in profile.get("resources", [])), path


# --------------------------------------------------------------------------------------------- where and when it starts


@pytest.mark.workflow
def test_any_folder_will_do_and_what_a_killed_workflow_left_stops_nothing(tmp_path: Path) -> None:
    """Snakemake's own locks and notes of a killed process, in a folder with all that shells and formats know."""
    folder = copy_project(tmp_path / "a {b} 'c\" $d ü")
    (folder / ".venv").symlink_to(sys.prefix)
    python = folder / ".venv" / "bin" / "python"
    artifact = Plan("smoke", root=folder).dataset("smoke_words")
    for place, name, text in (
        ("locks", "0.output.lock", "\n".join(map(str, artifact.paths))),
        *(("incomplete", base64.urlsafe_b64encode(str(path).encode()).decode(), "{}") for path in artifact.paths),
    ):
        path = folder / ".snakemake" / place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    arguments = ("fetch_smoke_words", "--cores", "2", *SMOKE)
    lock = folder / "results" / ".workflow.lock"
    lock.parent.mkdir()
    with lock.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        lock.with_name(".workflow.lock.process").write_text("4711")
        result = run_snakemake(folder, *arguments, python=python)
        assert result.returncode == 1
        assert f"a workflow in {folder} is under way in process 4711" in result.stderr
        assert "Traceback" not in result.stderr
        assert not (folder / artifact.folder).exists()
    result = run_snakemake(folder, *arguments, python=python)
    assert result.returncode == 0, result.stderr[-3000:]
    assert opened(folder, artifact)


def test_the_workflow_runs_in_its_folder_alone(tmp_path: Path) -> None:
    """Elsewhere its results would be elsewhere as well, or its configuration not be found."""
    result = run_snakemake(tmp_path, "-n", "--cores", "1", "-s", str(ROOT / "Snakefile"))
    assert result.returncode == 1
    assert f"the workflow runs in the project's folder alone; first: cd {ROOT}" in result.stdout + result.stderr


@pytest.mark.workflow
def test_a_dump_is_worked_off_in_shards_of_which_a_finished_one_stays(project: Path) -> None:
    """As after a kill: of two shards one is there. The joined set is that of a single job, under the same name."""
    edit(project, "scales.yaml", lambda v: v["smoke"].update(shards=2))
    plan = Plan("smoke", root=project)
    made, [first, second] = plan.made("wiki_next_sentence"), plan.shards("wiki_next_sentence")
    for each in made.inputs:
        ensure(plan, each, print)
    make_shard(plan, made.name, first, print)
    result = run_snakemake(project, f"make_{made.name}", "--cores", "2", *SMOKE)
    assert result.returncode == 0, result.stderr[-3000:]
    run = re.findall(r"^(\w+) +1$", result.stderr, flags=re.MULTILINE)
    assert sorted(run) == [f"make_{made.name}", f"shard_{made.name}"]
    assert not [path for path in (*first.paths, *second.paths) if (project / path).exists()]
    joined = (project / made.folder / made.files[0]).read_bytes()
    edit(project, "scales.yaml", lambda v: v["smoke"].update(shards=1))
    (project / made.record).unlink()
    make_dataset(Plan("smoke", root=project), made.name, print)
    assert (project / made.folder / made.files[0]).read_bytes() == joined


# ------------------------------------------------------------------------------------------ what runs again, what does not


@pytest.mark.workflow
class TestFinished:
    """Tests on a finished run; they leave it finished."""

    def planned(self, folder: Path, **config: object) -> set[str]:
        """Return what a plan of the copy would have to make, without Snakemake."""
        load_registry.cache_clear()
        plan = Plan.from_config({"scale": "smoke", **config}, root=folder)
        names = {f"{a.kind} {a.name}" for group in plan.wanted().values() for a in group if a.kind not in ("fit", "scores")
                 and not (folder / a.record).is_file()}  # fmt: skip
        names |= {f"score {key.run.partition('.')[0]}" for key in plan.unscored(plan.batch("all"))}
        stamps = [path for path in Jobs(plan).rendered() if not (folder / path).is_file()]
        return names | {f"view {path.name.partition('.')[0]}" for path in stamps}

    def test_outputs_are_all_there(self, finished: Path) -> None:
        plan = Plan("smoke", root=finished)
        for path in [*Jobs(plan).rendered(), *Jobs(plan).published_files(), plan.layout.report, plan.layout.collected]:
            assert (finished / path).is_file(), path
        assert "</html>" in (finished / plan.layout.report).read_text()
        assert not list(finished.glob("results/**/.*.partial")) + list(finished.glob("results/*/checkpoints/*/*"))
        assert self.planned(finished) == set()

    def test_one_job_of_each_rule_was_snakemakes(self, finished: Path) -> None:
        """The rest was made beforehand by the same functions; see tests/smoke.py."""
        log = (finished.parent / "log").read_text()
        for rule in ("fetch_smoke_trec", "make_dsbats_definitions", "publish_dsbats_sn", "build_backbone_smoke_glove",
                     "train", "score", "simcse_table_5", "simcse_figure_3", "collect_scores", "report"):  # fmt: skip
            assert re.search(rf"^{rule} +[1-9]", log, flags=re.MULTILINE), rule

    def test_a_second_run_does_nothing_also_where_metadata_are_lost(self, finished: Path) -> None:
        assert jobs(finished, "all", *SMOKE) == {}
        kept = finished.parent / "metadata"
        shutil.move(finished / ".snakemake", kept)
        try:
            assert jobs(finished, "all", *SMOKE) == {}
        finally:
            shutil.rmtree(finished / ".snakemake", ignore_errors=True)
            shutil.move(kept, finished / ".snakemake")

    def test_touching_and_reformatting_code_and_another_mirror_run_nothing(
        self, finished: Path, tmp_path: Path
    ) -> None:
        for path in [*finished.glob("sembench/**/*.py"), *finished.glob("workflow_scripts/*.py")]:
            text = path.read_text()
            future = "from __future__ import annotations\n"
            path.write_text(text.replace(future, f"{future}\n\n# a comment\n", 1) + "\n\n# the end\n")
            os.utime(path)
        assert jobs(finished, "all", *SMOKE, SEMBENCH_MIRROR=str(tmp_path)) == {}

    def test_editing_one_variant_retrains_that_one_only(self, finished: Path) -> None:
        path = finished / "registry/variants.yaml"
        before = path.read_text()
        try:
            edit(finished, "variants.yaml", _another_rate)
            found = jobs(finished, "all", *SMOKE)
            assert found["train"] == found["score"] == 1
            assert not [name for name in found if name.startswith(("fetch", "build", "make"))]
        finally:
            path.write_text(before)
        assert self.planned(finished) == set()

    def test_the_read_out_of_a_variant_trains_nothing_and_scores_that_one_only(self, finished: Path) -> None:
        path = finished / "registry/variants.yaml"
        before = path.read_text()
        try:
            edit(finished, "variants.yaml", lambda v: v["glove_6b_50d"].update(summary="other words"))
            assert self.planned(finished) == set()
            edit(finished, "variants.yaml", lambda v: v["minilm"].update(readout="first_last"))
            assert {name for name in self.planned(finished) if not name.startswith("view")} == {"score minilm"}
        finally:
            path.write_text(before)

    def test_a_changed_file_of_a_set_is_another_path_for_all_that_is_made_from_it(self, finished: Path) -> None:
        """Fetching, the corpus, trainings and scores all follow: nothing is trained on old data under a new name."""
        path = finished / "registry/datasets.yaml"
        before = path.read_text()
        try:
            edit(finished, "datasets.yaml", lambda v: v["smoke_wiki"]["files"][0].update(sha256="a" * 64))
            found = self.planned(finished)
            assert {"dataset smoke_wiki", "made enwiki_sentences", "run unsup_simcse_distilbert.s1"} <= found
            assert not [name for name in found if name.startswith(("run analogy_distilbert", "backbone"))]
        finally:
            path.write_text(before)

    def test_other_relations_build_their_data_first_also_where_metadata_are_lost(
        self, finished: Path, tmp_path: Path
    ) -> None:
        folder = shutil.copytree(finished, tmp_path / "copy", symlinks=True)
        shutil.rmtree(folder / ".snakemake")
        found = jobs(folder, "analogy_table_7", "--config", "scale=smoke", "relations=[E06,E07,E08]")
        assert found["make_dsbats_sn"] == found["make_dsbats4cl"] == found["make_dsbats_open"] == 1
        # Training is for DSBATS4CL and DefSent; their scores and, as the test set is another one, the untouched one's.
        assert (found["train"], found["score"], found["analogy_table_7"]) == (2, 3, 1)

    def test_editing_the_page_renders_it_and_trains_nothing(self, finished: Path) -> None:
        path = finished / "sembench/reporting/tables.py"
        before = path.read_text()
        try:
            path.write_text(before + "\n\nANOTHER_CONSTANT = 1\n")
            found = jobs(finished, "all", *SMOKE)
            assert {"report", "simcse_table_5", "simcse_figure_3"} <= set(found)
            assert not [name for name in found if name.startswith(("train", "score", "fetch", "build", "make"))]
        finally:
            path.write_text(before)

    def test_a_run_describes_itself(self, finished: Path) -> None:
        [folder] = finished.glob("results/smoke/runs/unsup_simcse_distilbert.s1.*")
        run = json.loads((folder / "run.json").read_text())
        record = json.loads((folder / "made.json").read_text())
        assert run["run"] == folder.name
        assert run["recipe"]["batch_size"] == 8
        assert [point["step"] for point in run["curve"]] == [0, 3, 6]
        assert len(run["losses"]) == 6
        assert run["best"]["dev"] == max(point["dev"] for point in run["curve"][1:])
        assert {"loss", "dev", "alignment", "uniformity"} <= set(run["curve"][1])
        assert run["precision"] == "fp32"
        assert run["segments"][0]["sentences_per_second"] > 0
        assert {"torch", "transformers", "numpy"} <= set(record["versions"])
        assert [each["kind"] for each in record["inputs"]] == ["backbone", "made", "dataset"]
        assert all(each["content"] for each in record["inputs"])

    def test_no_line_of_the_log_is_longer_than_300_characters(self, finished: Path) -> None:
        lines = (finished.parent / "log").read_text().splitlines()
        assert lines
        assert max(map(len, lines)) <= 300


def _another_rate(variants) -> None:
    variants["unsup_simcse_distilbert_first_last"]["recipe"]["learning_rate"] = 2.5e-4


def test_a_view_whose_data_cannot_be_had_says_what_is_missing(registry_copy: Path) -> None:
    edit(registry_copy, "scales.yaml", lambda v: v["demo"].update(sources=["mirror"]))
    plan = Plan("demo", root=registry_copy)
    assert "analogy_table_2" not in plan.chosen_views()
    with pytest.raises(
        SembenchError, match=r"'analogy_table_2' cannot be built at scale demo: data set mini_bats: needs the"
    ):
        Jobs(plan).scores("analogy_table_2", "all")


def test_the_end_of_a_job_that_was_left_over_hides_nothing(registry_copy: Path) -> None:
    """A workflow that is killed leaves the sign of a finished scoring job behind; new scores are asked for all the same."""
    plan = Plan("smoke", root=registry_copy, seeds=[1])
    run = plan.runs_of("glove_6b_50d")[0].id
    left = registry_copy / plan.layout.scoring(run, "all")
    left.parent.mkdir(parents=True)
    left.write_text("")
    assert plan.layout.scoring(run, "all") in Jobs(plan).scores("simcse_table_5", "all")
    assert not left.exists()
