"""Code's hash, made of the text as it leaves: that of a text with a password in it would invite guessing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

from daskscope import wire

MAX_KNOWN = 20_000
"""Twice what the reader of computations remembers to have sent."""


class Codes:
    """Gives each piece of code its hash, and the frames of this and later messages the same.

    On the scheduler's loop a piece has a name that only that process can make; a frame whose piece is not known here
    any more keeps it.
    """

    def __init__(self, scrub: Callable[[str], str]) -> None:
        self._scrub = scrub
        self._hashes: dict[str, str] = {}

    def settle(self, message: wire.Message) -> None:
        settled = [self._settled(code) for code in message.codes]
        message.codes = list({code.hash: code for code in settled}.values())  # two may differ in their secrets alone
        if self._hashes:
            message.computations = [self._renamed(computation) for computation in message.computations]

    def _settled(self, code: wire.Code) -> wire.Code:
        text = self._scrub(code.text)
        code_hash = self._hashes[code.hash] = hash_of(text)
        if len(self._hashes) > MAX_KNOWN:
            del self._hashes[next(iter(self._hashes))]
        return wire.Code(hash=code_hash, text=text)

    def _renamed(self, computation: wire.Computation) -> wire.Computation:
        known = self._hashes.get
        calls = [[replace(frame, code=known(frame.code, frame.code)) for frame in call] for call in computation.code]
        return replace(computation, code=calls)


def hash_of(text: str) -> str:
    """As the server checks it."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
