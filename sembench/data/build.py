"""Making a data set of the registry: its inputs checked, its record written last."""

from __future__ import annotations

from sembench.core.artifact import alone, opened, seal
from sembench.data.maker import Say
from sembench.plan import Plan


def make_dataset(plan: Plan, name: str, say: Say) -> None:
    """Make a data set of ``registry/made.yaml`` at the plan's scale, unless it is there.

    Processes that want the same one at once make it once.

    Raises:
        SembenchError: an input is not there or was changed, or the maker finds something wrong in it.
    """
    artifact, maker = plan.made(name), plan.maker(name)
    target = plan.root / artifact.folder
    with alone(plan.root, artifact) as is_open:
        if not is_open:
            return
        inputs = {role: opened(plan.root, each) for role, each in zip(plan.roles(name), artifact.inputs, strict=True)}
        if maker.plugin.encoders:
            from sembench.encoders.devices import use_threads

            use_threads(plan.scale.threads)
        target.mkdir(parents=True, exist_ok=True)
        facts = maker.plugin.make(maker.config, inputs, target, plan.root, say)
        seal(plan.root, artifact, facts)
