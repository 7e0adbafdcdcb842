"""Starting the processes that train one run together, and ending them together."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence

from torch.distributed import TCPStore  # type: ignore[attr-defined]

from sembench.training.checkpoint import EXIT_CODE, STOPPING

# Seconds between two looks at the processes.
AGAIN = 0.05


def launch(command: Sequence[str], processes: int, environment: Mapping[str, str]) -> int:
    """Run a command in several processes, pass signals on to them, and return the exit code of all.

    Their environment is that of ``torchrun``, which would do as well but for the end: it turns every exit code into 1,
    prints a page for a sentence, and gives 30 seconds to a process that saves its state.

    Args:
        command: of each process.
        processes: how many.
        environment: what they see besides their numbers.

    Returns:
        0 if all ended well, 75 if they stopped to go on later, else the code of the first one that failed, on which
        the rest is ended.
    """
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    shared = {
        **environment,
        "WORLD_SIZE": str(processes),
        "LOCAL_WORLD_SIZE": str(processes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",  # the store above, so that no process needs a port of its own
    }
    members: list[subprocess.Popen[bytes]] = []
    with _passing_signals_on(members) as received:
        try:
            for number in range(processes):
                own = {"RANK": str(number), "LOCAL_RANK": str(number)}
                members.append(subprocess.Popen(command, env={**shared, **own}))
            for number in received:
                members[-1].send_signal(number)  # It may have come before this one was there.
            return _ended(members)
        finally:
            for member in members:
                member.kill()
                member.wait()


def _ended(members: Sequence[subprocess.Popen[bytes]]) -> int:
    """Wait until all have ended, or one has failed."""
    while True:
        codes = [member.poll() for member in members]
        if failed := [code for code in codes if code not in (None, 0, EXIT_CODE)]:
            return abs(failed[0]) + 128 if failed[0] < 0 else failed[0]  # a signal's number, as a shell has it
        if None not in codes:
            return max(code for code in codes if code is not None)
        time.sleep(AGAIN)


@contextlib.contextmanager
def _passing_signals_on(members: Sequence[subprocess.Popen[bytes]]) -> Iterator[list[int]]:
    """Send what this process is sent to its members as well; yields the signals that came."""
    received: list[int] = []

    def send(number: int, _frame: object) -> None:
        received.append(number)
        for member in members:
            member.send_signal(number)

    # What is ignored stays so, as SIGHUP below nohup.
    heard = [number for number in STOPPING if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, send) for number in heard}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
