"""Transforms of vectors against independent computations."""

from __future__ import annotations

import numpy as np
import pytest

from sembench.core.errors import SembenchError
from sembench.core.plugin import TRANSFORMS


def whitening(**config: object):
    chosen = TRANSFORMS.parse({"kind": "whitening", **config}, "test")
    return lambda vectors: chosen.plugin.fit(chosen.config, vectors, 0), lambda vectors, state: chosen.plugin.apply(
        chosen.config, vectors, state
    )


def correlated(rows: int, width: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    scales = np.geomspace(3, 0.02, width)
    return (rng.normal(size=(rows, width)) * scales @ rng.normal(size=(width, width)) + 2).astype(np.float32)


def independent(on: np.ndarray, rows: np.ndarray, keep: int) -> np.ndarray:
    """As Su et al. write it, in float64: numpy's covariance, its singular value decomposition, W = U / sqrt(s)."""
    u, s, _ = np.linalg.svd(np.cov(on.astype(np.float64).T))
    return (rows.astype(np.float64) - on.astype(np.float64).mean(axis=0)) @ (u / np.sqrt(s))[:, :keep]


def aligned(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """A direction has no sign: give ours that of the other."""
    return found * np.sign(np.sum(found * expected, axis=0))


@pytest.mark.parametrize("keep", [None, 5])
def test_vectors_and_cosines_equal_an_independent_computation(keep: int | None) -> None:
    fit, apply = whitening(keep=keep)
    on, rows = correlated(400, 12), correlated(50, 12, seed=1)
    found = apply(rows, fit(on))
    expected = independent(on, rows, keep or 12)
    assert found.dtype == np.float32
    assert found.shape == (50, keep or 12)
    size = np.abs(expected).max()
    np.testing.assert_allclose(aligned(found, expected) / size, expected / size, atol=1e-6)
    unit = lambda x: x / np.linalg.norm(x, axis=1, keepdims=True)  # noqa: E731
    np.testing.assert_allclose(unit(found) @ unit(found).T, unit(expected) @ unit(expected).T, atol=1e-6)


def test_the_covariance_becomes_the_identity() -> None:
    fit, apply = whitening()
    on = correlated(600, 16)
    found = apply(on, fit(on)).astype(np.float64)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(np.cov(found.T), np.eye(16), atol=1e-5)


def test_the_kept_directions_are_those_of_the_largest_variance() -> None:
    fit, _ = whitening(keep=1)
    rng = np.random.default_rng(0)
    on = (rng.normal(size=(500, 3)) * [0.1, 5, 1]).astype(np.float32)
    direction = fit(on)["kernel"][:, 0]
    assert np.abs(direction).argmax() == 1
    assert direction[1] == pytest.approx(1 / on[:, 1].std(ddof=1), rel=0.01)


def test_directions_without_variance_become_zero() -> None:
    """Fewer vectors than dimensions: what is seen is white, what is not is nothing."""
    fit, apply = whitening()
    on = correlated(5, 8)
    found = apply(on, fit(on)).astype(np.float64)
    np.testing.assert_allclose(np.cov(found.T), np.diag([1, 1, 1, 1, 0, 0, 0, 0]), atol=1e-5)


def test_two_fits_are_equal() -> None:
    fit, _ = whitening()
    on = correlated(100, 6)
    one, other = fit(on), fit(on.copy())
    assert all(np.array_equal(one[name], other[name]) for name in ("mean", "kernel"))


@pytest.mark.parametrize(
    ("on", "keep", "message"),
    [
        (np.ones((1, 4), dtype=np.float32), None, "cannot be fitted on 1 vectors of width 4"),
        (np.ones((9, 4), dtype=np.float32), None, "all vectors are equal"),
        (correlated(9, 4), 5, "whitening to 5 dimensions cannot be fitted on 9 vectors of width 4"),
    ],
)
def test_what_cannot_be_whitened_is_named(on: np.ndarray, keep: int | None, message: str) -> None:
    with pytest.raises(SembenchError, match=message):
        whitening(keep=keep)[0](on)
