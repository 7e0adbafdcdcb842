"""Retrieval against a plain stable sort in float64; its protocol on invented captions."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from sembench.core.errors import SembenchError
from sembench.core.plugin import PROTOCOLS
from sembench.evaluation import retrieval
from sembench.evaluation.protocol import Source
from sembench.evaluation.retrieval import nearest
from sembench.registry.models import Dataset

ROOT = Path(__file__).parents[2]


def plain(queries: np.ndarray, corpus: np.ndarray, count: int, own: np.ndarray) -> tuple[list, list]:
    """Sort the whole corpus for each query; the sort keeps the order of equal cosines."""
    rows, cosines = [], []
    for query, barred in zip(queries.astype(np.float64), own, strict=True):
        found = []
        for row, vector in enumerate(corpus.astype(np.float64)):
            cosine = float(query @ vector / (np.linalg.norm(query) * np.linalg.norm(vector)))
            found.append((-np.inf if row == barred else round(cosine, 12), row))
        best = sorted(found, key=lambda pair: -pair[0])[:count]
        rows.append([row for _, row in best])
        cosines.append([cosine for cosine, _ in best])
    return rows, cosines


def points(rows: int, width: int = 5) -> np.ndarray:
    """Return vectors of small whole numbers: many of them are equal, or equal in direction."""
    found = np.random.default_rng(0).integers(-2, 3, (rows, width)).astype(np.float32)
    found[np.abs(found).sum(axis=1) == 0] = 1
    return found


@pytest.mark.parametrize("block", [1, 7, 4096])
@pytest.mark.parametrize("count", [1, 4, 11])
def test_answers_are_those_of_a_stable_sort(monkeypatch: pytest.MonkeyPatch, block: int, count: int) -> None:
    monkeypatch.setattr(retrieval, "_BLOCK", block)
    corpus, queries = points(150), np.concatenate([points(150)[:6], points(400)[-6:]])
    own = np.array([0, 1, 2, 3, 4, 5, -1, -1, -1, -1, -1, 9])
    rows, cosines = nearest(queries, corpus, count, own)
    expected = plain(queries, corpus, count, own)
    assert rows.tolist() == expected[0]
    np.testing.assert_allclose(cosines, expected[1], atol=1e-11)
    assert len(np.unique(cosines[:, :1] - cosines)) < cosines.size or count == 1  # there are ties


def test_a_small_corpus_gives_what_it_has() -> None:
    corpus = np.eye(3, dtype=np.float32)[:2]
    rows, cosines = nearest(np.array([[3.0, 1.0, 0.0]], dtype=np.float32), corpus, 4, np.array([0]))
    assert rows.tolist() == [[1, -1, -1, -1]]
    np.testing.assert_allclose(cosines, [[1 / np.sqrt(10), -np.inf, -np.inf, -np.inf]])
    with pytest.raises(SembenchError, match="ask for 1 at least"):
        nearest(corpus, corpus, 0)


@pytest.mark.parametrize("spare", [0, 3, 32])
def test_faiss_gives_the_same_answers(monkeypatch: pytest.MonkeyPatch, spare: int) -> None:
    pytest.importorskip("faiss", reason="the package faiss-cpu is not installed")
    monkeypatch.setattr(retrieval, "_SPARE", spare)
    corpus = np.concatenate([points(300), points(300)[:50] + np.float32(1e-7), np.ones((4, 5), dtype=np.float32)])
    queries, own = points(330)[-40:], np.arange(40) - 20
    exact, found = (nearest(queries, corpus, 6, own, engine) for engine in ("exact", "faiss"))
    assert found[0].tolist() == exact[0].tolist()
    np.testing.assert_allclose(found[1], exact[1], atol=1e-11)
    assert nearest(queries, corpus[:4], 6, own, "faiss")[0].tolist() == nearest(queries, corpus[:4], 6, own)[0].tolist()


def test_faiss_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(SembenchError, match="pip install faiss-cpu, or search exactly"):
        nearest(points(3), points(3), 1, engine="faiss")


# ------------------------------------------------------------------------------------------------- the protocol


def protocol(folder: Path, **raw: object):
    files = [{"name": f"train.{place}.en"} for place in range(1, 6)]
    entry = {"title": "t", "licence": "l", "reader": "captions", "files": files, "sources": [{"kind": "fixture"}]}
    chosen = PROTOCOLS.parse({"kind": "retrieval", "parts": ["train"], **raw}, "test")
    return chosen.plugin(chosen.config, Source(folder, Dataset.model_validate(entry)))


def test_the_protocol_counts_images_and_shows_what_is_nearest() -> None:
    folder = ROOT / "tests/fixtures/flickr30k"
    columns = [(folder / f"train.{place}.en").read_text().splitlines() for place in range(1, 6)]
    images = list(zip(*columns, strict=True))
    queries = ["nobody wrote this", images[2][3]]
    asked = protocol(folder, queries=queries, top=2, judged=7)
    table = {s: np.random.default_rng(i).normal(size=4).astype(np.float32) for i, s in enumerate(set(asked.sentences))}
    scores, predictions = asked.score(lambda sentences: np.array([table[sentence] for sentence in sentences]))

    def ranked(query: str) -> list[tuple[float, str]]:
        unit = {s: v.astype(float) / np.linalg.norm(v.astype(float)) for s, v in table.items()}
        corpus = dict.fromkeys(caption for image in images for caption in image)
        return sorted(((unit[query] @ unit[s], s) for s in corpus if s != query), reverse=True)

    hits = [ranked(image[0])[0][1] in image for image in images[:7]]
    (score,) = scores
    assert (score.split, score.metric, score.n) == ("captions", "same_image", 7)
    assert score.value == pytest.approx(sum(hits) / 7)
    expected = [(query, rank + 1, ranked(query)[rank]) for query in queries for rank in range(2)]
    assert [(p["query"], p["rank"], p["sentence"]) for p in predictions] == [(q, r, s) for q, r, (_, s) in expected]
    assert [p["cosine"] for p in predictions] == pytest.approx([cosine for _, _, (cosine, _) in expected])


def test_a_caption_of_the_same_image_counts_and_repeats_are_one_sentence(tmp_path: Path) -> None:
    # Image 0 has one caption twice; the query, its first caption, is nearest to another of its own.
    lines = [["a", "c"], ["b", "d"], ["a", "e"], ["f", "g"], ["h", "b"]]
    for place, captions in enumerate(lines, start=1):
        (tmp_path / f"train.{place}.en").write_text("\n".join(captions) + "\n")
    asked = protocol(tmp_path, queries=["a"], top=3)
    assert list(asked.sentences) == ["a", "b", "f", "h", "c", "d", "e", "g", "a"]
    angles = {"a": 0.0, "b": 0.1, "c": 0.3, "d": 2.0, "e": 0.25, "f": 2.2, "g": 2.4, "h": 2.6}
    scores, predictions = asked.score(
        lambda sentences: np.array([[np.cos(angles[s]), np.sin(angles[s])] for s in sentences], dtype=np.float32)
    )
    assert scores[0].value == 1.0  # b for a; e, of the same image, for c
    assert [p["sentence"] for p in predictions] == ["b", "e", "c"]
    with pytest.raises(SembenchError, match="the corpus has 8 captions for the nearest 8; lower 'top'"):
        protocol(tmp_path, queries=["a"], top=8).score(lambda _: np.zeros((0, 2)))
