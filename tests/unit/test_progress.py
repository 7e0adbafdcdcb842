"""Lines about progress: how often they come, and what they count."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from sembench.core import progress
from sembench.core.progress import Interval, StepProgress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that stands still unless a test moves it."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock.now)
    return clock


def due(clock: SimpleNamespace, interval: Interval, moments: list[float]) -> list[float]:
    found = []
    for moment in moments:
        clock.now = 100.0 + moment
        if interval.is_over():
            found.append(moment)
    return found


def test_a_line_a_minute_counted_from_the_last_one(clock: SimpleNamespace) -> None:
    moments = [1.0, 59.0, 61.0, 119.0, 121.0, 300.0, 359.0, 360.0]
    assert due(clock, Interval(), moments) == [61.0, 121.0, 300.0, 360.0]


def test_the_first_line_may_come_sooner(clock: SimpleNamespace) -> None:
    assert due(clock, Interval(10.0), [9.0, 11.0, 30.0, 71.0]) == [11.0, 71.0]


def test_work_goes_on_when_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that is closed, or a `tee` that a signal ended, must not cost a training its state."""

    def broken(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("builtins.print", broken)
    with StepProgress("run", 1) as steps:
        steps.say("a line")
        steps.step(1)


def test_steps_say_rate_and_rest_without_pauses(
    clock: SimpleNamespace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Continued at step 10 of 20: ten items a step, a step each 2 s, of 20 s ten for a dev score."""
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: False, raising=False)
    with StepProgress("run", 20, done=10) as steps:
        for _ in range(5):
            clock.now += 2.0
            steps.step(10, "loss 1.0")
        steps.paused += 10.0
        clock.now += 10.0
        for _ in range(5):
            clock.now += 2.0
            steps.step(10)
    first, last = capsys.readouterr().err.splitlines()
    assert first == "run: step 15/20, loss 1.0, 5.0 sentences/s, about 10 s left"
    assert last == "run: step 20/20, 5.0 sentences/s, about 0 s left"


def test_what_is_shown_of_progress_is_text(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    with StepProgress("run [red]", 1) as steps:
        steps.say("[bold]loss[/] \x1b[2J\n")
        steps.step(1, "[link=x]")
    said = "".join(capsys.readouterr())
    assert "run [red]: [bold]loss[/] \\x1b[2J\\n" in said
    progress.say("a\rb")
    assert capsys.readouterr().err == "a\\rb\n"
