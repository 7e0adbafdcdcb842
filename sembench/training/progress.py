"""Progress of long work: a bar on a terminal, one line a minute in a log."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

LOG_EVERY = 60.0
FIRST_LINE = 10.0


class StepProgress:
    """Shows steps done, sentences a second and the time left; nothing is printed between two lines of a log."""

    def __init__(self, title: str, steps: int, done: int = 0) -> None:
        self.title = title
        self.steps = steps
        self.done = done
        self.start = time.monotonic()
        self.sentences = 0
        self.paused = 0.0
        self._first = done
        self._next_line = FIRST_LINE
        self._bar: Progress | None = None

    def __enter__(self) -> StepProgress:
        if sys.stderr.isatty():
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, TextColumn("{task.fields[note]}"))
            self._bar.start()
            self._task = self._bar.add_task(self.title, total=self.steps, completed=self.done, note="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.start

    @property
    def rate(self) -> float:
        """Sentences a second, dev scoring not counted."""
        return self.sentences / max(self.seconds - self.paused, 1e-9)

    def step(self, sentences: int, note: str) -> None:
        """Count one step of so many sentences; ``note`` is what is worth seeing, such as the loss."""
        self.done += 1
        self.sentences += sentences
        note = f"{note}, {self.rate:.1f} sentences/s"
        elapsed = self.seconds
        if self._bar:
            self._bar.update(self._task, completed=self.done, note=note)
        elif elapsed >= self._next_line or self.done == self.steps:
            left = elapsed / max(self.done - self._first, 1) * (self.steps - self.done)
            self.say(f"step {self.done}/{self.steps}, {note}, about {left:.0f} s left")
            self._next_line = elapsed + LOG_EVERY

    def say(self, text: str) -> None:
        """Print a line at once, above the bar if there is one."""
        line = f"{self.title}: {text}"
        if self._bar:
            self._bar.console.print(line)
        else:
            print(line, file=sys.stderr, flush=True)  # noqa: T201
