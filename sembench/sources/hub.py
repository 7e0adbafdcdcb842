"""Snapshots on the Hugging Face hub (or what ``HF_ENDPOINT`` names), always of one commit."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from sembench.core.errors import SembenchError
from sembench.core.locks import locked
from sembench.registry.models import HubSource
from sembench.sources.order import Order, Origin


def fetch_hub(source: HubSource, order: Order) -> None:
    """Fill the order from a repository; a revision that is not a commit stands for the commit of its first use.

    Raises:
        SembenchError: The hub did not deliver, or the snapshot lacks a member.
        OSError: The disk is full.
    """
    name = f"{source.repo}@{source.revision}"
    is_commit = re.fullmatch("[0-9a-f]{40}", source.revision)
    revision = (None if is_commit else order.locks.value(name)) or source.revision
    members = {file.name: source.member(file.name) for file in order.missing}
    order.say(f"downloading {name} from the hub")
    # A fixed folder instead of a fresh one: what an interrupted try left there is not fetched again.
    folder = order.site.cached(f"hub {source.repo_type} {source.repo} {revision}")
    with locked(folder.with_suffix(".lock"), f"download of {name}"):
        commit = _snapshot(source, revision, folder, list(members.values()))
        try:
            order.accept_all(folder, members, Origin("hub", f"{source.repo}@{commit}"))
        except SembenchError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        shutil.rmtree(folder)
    if not is_commit:
        order.locks.claim(name, "hub", commit=commit)


def _snapshot(source: HubSource, revision: str, folder: Path, members: list[str]) -> str:
    command = [sys.executable, "-m", "sembench.sources.snapshot", source.repo, revision, source.repo_type]
    # Standard error stays the terminal's, for the hub's own progress bars.
    done = subprocess.run(
        [*command, str(folder), *members],
        check=False,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "0"},
    )
    answer: dict[str, Any] = json.loads((done.stdout.splitlines() or ["{}"])[-1])
    if answer.get("errno") in (errno.ENOSPC, errno.EDQUOT):
        raise OSError(answer["errno"], os.strerror(answer["errno"]), str(folder))
    if "commit" not in answer:
        raise SembenchError(f"{source.repo}@{revision} did not arrive ({answer.get('error', 'the process ended')})")
    return str(answer["commit"])
