"""Progress of long work: a bar on a terminal, a line a minute in a log."""

from __future__ import annotations

import contextlib
import sys
import time
from types import TracebackType

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from sembench.core.errors import printable

LOG_EVERY = 60.0  # seconds between two lines
FIRST_LINE = 10.0


def say(text: str) -> None:
    """Print a line to standard error at once; what it quotes cannot move the cursor.

    Work does not end because nobody listens any more.
    """
    with contextlib.suppress(OSError):
        print(printable(text), file=sys.stderr, flush=True)  # noqa: T201


class Interval:
    """Says when the next line about progress is due.

    Args:
        first: seconds until the first line; none: as between two lines.
    """

    def __init__(self, first: float | None = None) -> None:
        self._start = time.monotonic()
        self._next = LOG_EVERY if first is None else first

    @property
    def seconds(self) -> float:
        """Seconds since the start, more than 0."""
        return max(time.monotonic() - self._start, 1e-9)

    def is_over(self) -> bool:
        """Return whether a line is due now, and if so begin the next interval."""
        over = self.seconds >= self._next
        if over:
            self._next = self.seconds + LOG_EVERY
        return over


class StepProgress:
    """Shows steps done, items a second and the time left; nothing is printed between two lines of a log.

    Args:
        title: what is done, the beginning of every line.
        steps: how many there are.
        done: how many were done before, by an earlier process.
        unit: what ``step`` counts.
        shown: whether anything is printed; of several processes that do it together one should.
    """

    def __init__(self, title: str, steps: int, done: int = 0, unit: str = "sentences", *, shown: bool = True) -> None:
        self.title = title
        self.steps = steps
        self.done = done
        self.unit = unit
        self.shown = shown
        self.items = 0
        self.paused = 0.0
        self._first = done
        self._interval = Interval(FIRST_LINE)
        self._bar: Progress | None = None

    def __enter__(self) -> StepProgress:
        if self.shown and sys.stderr.isatty():
            # Titles and notes are text, not markup.
            title, note = (TextColumn(f"{{task.{field}}}", markup=False) for field in ("description", "fields[note]"))
            self._bar = Progress(title, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), note)
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
        return self._interval.seconds

    @property
    def rate(self) -> float:
        """Items a second, pauses such as dev scoring not counted."""
        return self.items / max(self.seconds - self.paused, 1e-9)

    def step(self, items: int, note: str = "") -> None:
        """Count one step of so many items; ``note`` is what is worth seeing, such as the loss."""
        self.done += 1
        self.items += items
        note = ", ".join(part for part in (note, f"{self.rate:.1f} {self.unit}/s") if part)
        if self._bar:
            self._bar.update(self._task, completed=self.done, note=note)
        elif self._interval.is_over() or self.done == self.steps:
            left = self.seconds / max(self.done - self._first, 1) * (self.steps - self.done)
            self.say(f"step {self.done}/{self.steps}, {note}, about {left:.0f} s left")

    def say(self, text: str) -> None:
        """Print a line at once, above the bar if there is one."""
        line = printable(f"{self.title}: {text}")
        if self._bar:
            self._bar.console.print(line, markup=False)
        elif self.shown:
            say(line)
