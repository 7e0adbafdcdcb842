"""SimCSE's head, which supervised and unsupervised training share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from sembench.core.lazy import nn
from sembench.core.schema import Strict
from sembench.training.objectives.base import TrainReadout

if TYPE_CHECKING:
    from typing import Self


class HeadConfig(Strict):
    """Parameters of an objective that sees vectors behind a head."""

    temperature: float = Field(0.05, gt=0, description="divisor of the cosines (paper, Appendix A)")
    readout: TrainReadout = Field("cls", description="vector that the objective sees, before the head")
    head: Literal["mlp", "none"] = Field("mlp", description="mlp: new Linear(H, H) + tanh on read-out cls")

    @model_validator(mode="after")
    def _head_fits(self) -> Self:
        if self.head == "mlp" and self.readout != "cls":
            raise ValueError(f"the head 'mlp' belongs on read-out 'cls', not '{self.readout}'; set head: none")
        return self

    @property
    def heads(self) -> tuple[str, ...]:
        """Names of the read-outs that the head adds to the encoder; none without a head."""
        return ("cls_mlp",) if self.head == "mlp" else ()

    @property
    def view(self) -> str:
        """The read-out whose vectors the loss compares."""
        return self.heads[0] if self.heads else self.readout


def new_heads(config: HeadConfig, width: int) -> nn.ModuleDict:
    """Return freshly initialised heads by the names of their read-outs; vectors of size ``width`` in and out."""
    from sembench.encoders.readouts import MLPHead

    return nn.ModuleDict({name: MLPHead(width) for name in config.heads})
