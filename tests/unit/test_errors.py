"""A user's mistakes end in one sentence and exit code 2; mistakes of ours keep their traceback."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from sembench.core.errors import SembenchError, did_you_mean, explained, printable, unknown
from sembench.core.files import atomic_path, write_text


def ends(error: Exception) -> int | str | None:
    @explained
    def main() -> None:
        raise error

    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code


def test_a_mistake_is_one_sentence_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert ends(SembenchError("file x, line 3: correct it")) == 2
    assert capsys.readouterr() == ("", "error: file x, line 3: correct it\n")


def on_top_of(cause: Exception) -> Exception:
    """An error of a library that was raised while it handled another, as torch's."""
    error = RuntimeError("unexpected pos 768 vs 662")
    error.__context__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        on_top_of(OSError(errno.ENOSPC, "No space left on device")),
        OSError(errno.ENOSPC, "No space left on device", "model.safetensors"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_is_said_whatever_library_met_it(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    assert ends(error) == 2
    assert capsys.readouterr().err.startswith("error: the disk is full")


@pytest.mark.parametrize(
    ("quoted", "shown"),
    [
        ("two\nlines", r"two\nlines"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("over\rwritten", r"over\rwritten"),
        ("a\u202egnp.exe", r"a\u202egnp.exe"),
        ("\ud800", r"\ud800"),
        ("größer, 日本, $x$ [bold]", "größer, 日本, $x$ [bold]"),
    ],
)
def test_what_an_error_quotes_stays_one_line_and_does_nothing_to_a_terminal(quoted: str, shown: str) -> None:
    assert str(SembenchError(f"the name '{quoted}' is odd")) == f"the name '{shown}' is odd"
    assert printable(quoted) == shown


def test_other_errors_are_not_hidden() -> None:
    @explained
    def main() -> None:
        raise OSError(errno.EACCES, "Permission denied")

    with pytest.raises(PermissionError):
        main()


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "old")
    with pytest.raises(KeyboardInterrupt), atomic_path(tmp_path / "a.txt") as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_the_nearest_name_is_offered() -> None:
    assert did_you_mean("lern_rate", ["learning_rate", "epochs"]) == "; did you mean 'learning_rate'?"
    assert did_you_mean("zzz", ["learning_rate"]) == ""
    assert str(unknown("key", "zzz", ["b", "a"], "here")) == "key 'zzz' is not in here; known: a, b"


def test_an_unknown_name_is_answered_by_the_nearest_or_by_some() -> None:
    assert (
        str(unknown("suite", "stss", ["sts", "transfer"], "here")) == "suite 'stss' is not in here; did you mean 'sts'?"
    )
    names = [f"model_{k:02}" for k in range(20)]
    assert str(unknown("model", "zzz", names)).endswith(f"known: {', '.join(names[:12])} and 8 more")
    assert str(unknown("model", "zzz", names[:12])).endswith("model_11")
    assert str(unknown("model", "zzz", [])).endswith("known: none")
