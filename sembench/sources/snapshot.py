"""Command line of its own that downloads a hub snapshot: ``repo revision repo_type folder member...``.

It runs in a process of its own, since ``huggingface_hub`` reads ``HF_HUB_OFFLINE`` when it is imported, and the
workflow sets that for everything else. The last line on standard output is JSON: ``commit``, or ``error`` with
``errno``.
"""

from __future__ import annotations

import glob
import json
import re
import sys

from huggingface_hub import HfApi, snapshot_download


def main(repo: str, revision: str, repo_type: str, folder: str, *members: str) -> None:
    """Download the members of a repository at a revision into a folder and print the commit it stands for."""
    commit = revision
    if not re.fullmatch("[0-9a-f]{40}", revision):
        commit = str(HfApi().repo_info(repo, revision=revision, repo_type=repo_type).sha)
    # Patterns are wanted; names such as "I01 [noun - plural].txt" are to be taken literally.
    wanted = [glob.escape(member) for member in members]
    snapshot_download(repo, revision=commit, repo_type=repo_type, allow_patterns=wanted, local_dir=folder)
    print(json.dumps({"commit": commit}))  # noqa: T201


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception as error:  # whatever it is, the caller says it in one sentence
        reason = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
        print(json.dumps({"error": reason, "errno": getattr(error, "errno", None)}))  # noqa: T201
