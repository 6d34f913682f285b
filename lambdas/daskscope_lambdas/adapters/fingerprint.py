"""What is kept of a deleted cluster: enough to know it again, too little to tell what it was."""

from __future__ import annotations

import hashlib


def fingerprint(*words: str) -> str:
    """SHA-256 of the words in their order, as hex digits."""
    return hashlib.sha256("\n".join(words).encode()).hexdigest()
