"""A workflow while it runs: alone in its folder, on files that are not from the future, ended in order by a signal."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import psutil

from sembench.core.locks import locked
from sembench.core.progress import say
from sembench.plan.graph import Plan
from sembench.plan.layout import DATA, RESULTS

# Jobs are commands of these scripts.
SCRIPTS = "workflow_scripts/"


def begin(plan: Plan) -> None:
    """Prepare for jobs; called once all is planned, by the workflow's own process and not by its jobs.

    Raises:
        SembenchError: another workflow runs in this folder.
        OSError: a time stamp is in the future and cannot be changed.
    """
    hold(plan.root)
    settle(plan.root / DATA, plan.root / plan.layout.base)
    end_in_order()


def hold(root: Path) -> None:
    """Lock the project's folder until this process ends, however it ends.

    Snakemake's own lock outlives a killed process, and is therefore off in all profiles.
    """
    held = contextlib.ExitStack()
    held.enter_context(locked(root / RESULTS / ".workflow.lock", f"a workflow in {root}", wait=False))
    atexit.register(held.close)


def settle(*folders: Path) -> None:
    """Give files whose time stamp is in the future that of now.

    Names and records say what files hold; time stamps are Snakemake's, which throws away what was made from a newer
    file, once it is made.
    """
    now = time.time()
    changed = [path for folder in folders for path in _files(folder) if path.stat().st_mtime > now]
    for path in changed:
        os.utime(path, (now, now))
    if changed:
        say(f"files with a time stamp in the future have that of now: {len(changed)}, such as {changed[0]}")


def _files(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder, followlinks=True):
        yield from (path for name in names if (path := Path(parent, name)).is_file())


def end_in_order() -> None:
    """Pass SIGTERM on to the jobs, and say so: Snakemake alone would wait for them, hours, without a word."""
    before: Any = signal.getsignal(signal.SIGTERM)

    def end(number: int, frame: FrameType | None) -> None:
        say("stopping: jobs are told to save what they have and to end; the same command goes on from there")
        if callable(before):
            before(number, frame)  # From here on Snakemake starts none.
        for job in jobs():
            with contextlib.suppress(psutil.NoSuchProcess):
                job.terminate()

    signal.signal(signal.SIGTERM, end)


def jobs() -> Iterator[psutil.Process]:
    """Yield the processes of this workflow's jobs, without the shells that they were started by."""
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if any(word.startswith(SCRIPTS) for word in process.cmdline()):
                yield process
