"""Whitening: vectors with mean zero and the identity as covariance (Su et al. 2021; SimCSE, Appendix C)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field

from sembench.core.errors import SembenchError
from sembench.core.lazy import np
from sembench.core.schema import Strict
from sembench.encoders.transforms.base import State, Transform, Vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray


class WhiteningConfig(Strict):
    """Parameters."""

    keep: int | None = Field(None, gt=0, description="directions of the largest variance that stay; none: all")


class Whitening(Transform[WhiteningConfig]):
    """``(x - mean) U diag(1 / sqrt(s))`` with ``U diag(s) U^T`` the covariance of what it is fitted on.

    Every vector counts once; the engine fits on unique sentences. The authors' code keeps repeats, so that a premise
    with three hypotheses weighs three times. They scale the result to length 1, which is left to what compares vectors
    (a cosine does). Computed in float64.
    """

    Config = WhiteningConfig

    @classmethod
    def fit(cls, config: WhiteningConfig, vectors: Vectors, seed: int) -> State:  # noqa: ARG003
        """Return ``mean`` (width,) and ``kernel`` (width, kept), float64.

        Directions without variance, as there are where vectors are fewer than dimensions, get the kernel 0: what is
        undefined there must not drown the rest.

        Raises:
            SembenchError: there are fewer than two vectors, ``keep`` exceeds the width, or all vectors are equal.
        """
        rows = vectors.astype(np.float64)
        kept = config.keep or rows.shape[1]
        if len(rows) < 2 or kept > rows.shape[1]:
            raise SembenchError(
                f"whitening to {kept} dimensions cannot be fitted on {len(rows)} vectors of width {rows.shape[1]}; "
                "fit it on more sentences or lower 'keep'"
            )
        mean = rows.mean(axis=0)
        rows -= mean
        variances, directions = np.linalg.eigh(rows.T @ rows / (len(rows) - 1))
        variances, directions = variances[::-1][:kept], directions[:, ::-1][:, :kept]
        if variances[0] <= 0:
            raise SembenchError("whitening cannot be fitted: all vectors are equal; fit it on other sentences")
        real = variances > variances[0] * len(mean) * np.finfo(np.float64).eps
        scales = np.where(real, 1 / np.sqrt(np.where(real, variances, 1.0)), 0.0)
        # A direction has no sign of its own: its largest part is made positive, so that two fits are equal.
        signs = np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(kept)])
        return {"mean": mean, "kernel": directions * signs * scales}

    @classmethod
    def apply(cls, config: WhiteningConfig, vectors: Vectors, state: Mapping[str, NDArray[Any]]) -> Vectors:  # noqa: ARG003
        """Return whitened vectors, (n, kept) float32, of vectors (n, width)."""
        found: Vectors = ((vectors.astype(np.float64) - state["mean"]) @ state["kernel"]).astype(np.float32)
        return found


PLUGIN = Whitening
