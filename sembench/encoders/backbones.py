"""Turning fetched files into an ordinary model folder, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sembench.core.artifact import alone, opened, seal
from sembench.core.errors import SembenchError
from sembench.core.files import write_json
from sembench.core.plugin import Chosen
from sembench.plan import Plan
from sembench.plan.layout import ENTRY
from sembench.registry.entries import converter_of


def build_backbone(
    name: str,
    title: str,
    chosen: Chosen[Any],
    package: str | None,
    readout: str,
    source: Path | None,
    target: Path,
) -> None:
    """Convert fetched files into the model folder ``target``; ``encoder.json`` is written last.

    Args:
        name: of the backbone in the registry.
        title: for people.
        chosen: the converter and its parameters.
        package: pinned requirement whose code the encoder needs, if any.
        readout: the read-out that it is used with unless a row says otherwise.
        source: folder of the fetched files; none where the code of a package is all there is.
        target: the model folder, made where it is absent.

    Raises:
        SembenchError: the files are not what the conversion expects, or the read-out is none that it will offer.
    """
    if readout not in chosen.plugin.offers(chosen.config):
        offered = ", ".join(chosen.plugin.offers(chosen.config))
        raise SembenchError(f"backbone '{name}': read-out '{readout}' is not offered by it; it offers {offered}")
    target.mkdir(parents=True, exist_ok=True)
    extra = chosen.plugin.convert(chosen.config, source, target)
    if missing := [file for file in chosen.plugin.files if file != ENTRY and not (target / file).is_file()]:
        raise SembenchError(f"backbone '{name}': the converter '{chosen.kind}' did not write {', '.join(missing)}")
    entry = {"kind": chosen.plugin.encoder, "name": name, "title": title, "readout": readout, "package": package}
    write_json(target / ENTRY, {**entry, **extra})


def make_backbone(plan: Plan, name: str) -> None:
    """Build a planned backbone: its fetched files checked, its record written last.

    Processes that want the same one at once build it once.

    Raises:
        SembenchError: an unknown name, files that were changed, or files that the conversion does not expect.
    """
    artifact = plan.backbone(name)
    entry = plan.registry.backbones[name]
    folder = plan.root / artifact.folder
    with alone(plan.root, artifact) as is_open:
        if not is_open:
            return
        source = opened(plan.root, artifact.inputs[0]) if artifact.inputs else None
        chosen = converter_of(name, entry)
        build_backbone(name, entry.title, chosen, entry.package, entry.readout, source, folder)
        seal(plan.root, artifact)
