"""The measurement on a GPU runs from end to end, in miniature."""

from __future__ import annotations

import pytest
import torch

from tests.gpu.throughput import Shape, deviation, encoders, flops, main


def test_it_measures_both_and_compares_with_the_processor(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--device", "cpu", "--tiny"])
    printed = capsys.readouterr().out
    rows = [line.split("|")[2].strip() for line in printed.splitlines() if " tiny, batch 8 |" in line]
    assert rows == ["sembench, one pass", "sembench, chunks of 2, vectors kept", "sentence-transformers"] * 2
    assert "at most 0.0e+00 apart" in printed


def test_floating_point_operations_by_hand() -> None:
    """BERT base: 85 million weights in its layers; a row of 32 also has 2 products of 32 x 32 x 768 a layer, thrice."""
    base = Shape(layers=12, width=768, inner=3072, heads=12, parameters=0)
    weights = 12 * (4 * 768 * 768 + 2 * 768 * 3072)
    assert weights == 84_934_656
    assert flops(base, [32, 32]) == 2 * (6 * weights * 32 + 12 * 2 * 2 * 32 * 32 * 768 * 3)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_has_the_loss_of_the_processor() -> None:
    assert deviation(encoders(tiny=True)[0], torch.device("cuda")) < 1e-3
