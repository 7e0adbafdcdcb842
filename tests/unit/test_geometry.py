"""Measures of how vectors lie, where their values are known in closed form; densities against scipy and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from sembench.evaluation.densities import density, group_of
from sembench.evaluation.geometry import alignment, uniformity
from sembench.evaluation.spectrum import average_cosine, effective_rank, largest_share, singular_values


def sphere(points: int) -> np.ndarray:
    """Return points that lie evenly on the sphere in three dimensions: a Fibonacci lattice, of lengths that differ."""
    numbers = np.arange(points)
    height = 1 - (2 * numbers + 1) / points
    angle = math.pi * (1 + math.sqrt(5)) * numbers
    width = np.sqrt(1 - height**2)
    rows = np.stack([width * np.cos(angle), width * np.sin(angle), height], axis=1)
    return (rows * (1 + numbers % 3)[:, None]).astype(np.float32)


def test_two_antipodal_points() -> None:
    rows = np.array([[2.0, 0.0, 0.0], [-0.5, 0.0, 0.0]], dtype=np.float32)
    assert alignment(rows[:1], rows[1:]) == pytest.approx(4)
    # Of four pairs two are of a point with itself, two at the squared distance 4.
    assert uniformity(rows) == pytest.approx(math.log((1 + math.exp(-8)) / 2))
    assert average_cosine(rows) == pytest.approx(0)
    values = singular_values(rows)
    np.testing.assert_allclose(values, [math.sqrt(2), 0], atol=1e-7)
    assert (largest_share(values), effective_rank(values)) == (pytest.approx(1), pytest.approx(1, abs=1e-6))
    # A third sentence at one of them: cosines 1 of five pairs in nine, -1 of four.
    assert average_cosine(rows, np.array([2, 1])) == pytest.approx(1 / 9)


def test_the_uniform_sphere() -> None:
    rows = sphere(1500)
    # The cosine of two independent points is uniform on -1 to 1, so E exp(-2 (2 - 2 cos)) = exp(-4) sinh(4) / 4.
    assert uniformity(rows) == pytest.approx(math.log(math.exp(-4) * math.sinh(4) / 4), abs=2e-3)
    assert average_cosine(rows) == pytest.approx(0, abs=1e-5)
    values = singular_values(rows)
    np.testing.assert_allclose(values, math.sqrt(1500 / 3) * np.ones(3), rtol=1e-3)
    assert (largest_share(values), effective_rank(values)) == (
        pytest.approx(1 / 3, abs=1e-3),
        pytest.approx(3, abs=1e-3),
    )


def test_a_collapsed_set() -> None:
    rows = np.outer([1, 2, 3, 4], [1.0, -2.0, 0.5]).astype(np.float32)
    assert alignment(rows[:2], rows[2:]) == pytest.approx(0, abs=1e-12)
    assert uniformity(rows) == pytest.approx(0, abs=1e-9)
    assert average_cosine(rows) == pytest.approx(1)
    values = singular_values(rows)
    np.testing.assert_allclose(values, [2, 0, 0], atol=1e-6)
    assert largest_share(values) == pytest.approx(1)


def test_the_average_cosine_is_at_most_the_largest_share() -> None:
    rng = np.random.default_rng(0)
    rows, counts = (rng.normal(size=(60, 9)) + 0.7).astype(np.float32), rng.integers(1, 4, 60)
    unit = np.repeat(rows / np.linalg.norm(rows, axis=1, keepdims=True), counts, axis=0).astype(float)
    found = average_cosine(rows, counts)
    assert found == pytest.approx(np.mean([a @ b for a in unit for b in unit]), abs=1e-7)
    assert 0.2 < found < largest_share(singular_values(rows, counts))


def test_groups_have_their_lower_end_and_the_last_one_both() -> None:
    gold = np.array([0.0, 0.999, 1.0, 3.8, 4.0, 5.0, 5.001, -0.1])
    assert group_of(gold, (0, 1, 2, 3, 4, 5)).tolist() == [0, 0, 1, 3, 4, 4, -1, -1]
    counted = np.bincount(group_of(gold[:6], (0, 1, 2, 3, 4, 5)))
    assert counted.tolist() == np.histogram(gold[:6], (0, 1, 2, 3, 4, 5))[0].tolist()


def test_a_density_is_scipys_with_what_reaches_beyond_mirrored_back() -> None:
    cosines, grid = np.array([-0.2, 0.1, 0.15, 0.95, 1.0]), np.linspace(-1, 1, 201)
    kernel = stats.gaussian_kde(cosines, bw_method=0.05 / cosines.std(ddof=1))
    found = density(cosines, grid, 0.05)
    expected = kernel(grid) + kernel(2 - grid) + kernel(-2 - grid)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)
    assert np.trapezoid(found, grid) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(("cosine", "highest"), [(0.3, 1.0), (1.0, 2.0), (-1.0, 2.0)])
def test_a_density_of_equal_cosines_is_one_peak(cosine: float, highest: float) -> None:
    grid = np.linspace(-1, 1, 201)
    found = density(np.full(7, cosine), grid, 0.02)
    assert grid[found.argmax()] == pytest.approx(cosine)
    # At a border both halves of the peak lie on its one side.
    assert found.max() == pytest.approx(highest / (0.02 * math.sqrt(2 * math.pi)))
    assert np.trapezoid(found, grid) == pytest.approx(1, abs=1e-3)
