"""Making a data set of the registry: its inputs checked, its record written last."""

from __future__ import annotations

from sembench.core.artifact import opened, seal
from sembench.data.maker import Say
from sembench.plan import Plan


def make_dataset(plan: Plan, name: str, say: Say) -> None:
    """Make a data set of ``registry/made.yaml`` at the plan's scale.

    Raises:
        SembenchError: an input is not there or was changed, or the maker finds something wrong in it.
    """
    artifact, maker = plan.made(name), plan.maker(name)
    inputs = {
        role: opened(plan.root, each)
        for role, each in zip(plan.registry.made[name].inputs, artifact.inputs, strict=True)
    }
    target = plan.root / artifact.folder
    target.mkdir(parents=True, exist_ok=True)
    facts = maker.plugin.make(maker.config, inputs, target, plan.root, say)
    seal(plan.root, artifact, facts)
