"""Equal values have equal text, and equal text has an equal digest."""

from __future__ import annotations

import hashlib
import json
from typing import Any

KEY_DIGITS = 8


def canonical_json(value: Any) -> str:
    """Return JSON with sorted keys and no spaces, the same for equal values whatever their order in YAML."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(value: Any, digits: int = KEY_DIGITS) -> str:
    """Return the first hex digits of the SHA-256 of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:digits]
