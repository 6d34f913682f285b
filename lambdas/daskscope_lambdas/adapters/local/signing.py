"""Addresses that only this place can have given: signed with a key of its data folder, and good until a moment."""

from __future__ import annotations

import base64
import hmac
import math
from collections.abc import Callable, Mapping
from urllib.parse import urlencode

from daskscope_lambdas.ports import Clock, NotAdmitted

_UNTIL, _SIGNATURE = "until", "sig"


class Signer:
    """`key` gives 32 random bytes, the same each time; it is first asked when something is signed."""

    def __init__(self, key: Callable[[], bytes], clock: Clock) -> None:
        self._key, self._clock = key, clock

    def signed(self, path: str, until: float, told: Mapping[str, str]) -> str:
        """`path` with what is told, all of it signed, good until then (epoch s)."""
        parameters = {**told, _UNTIL: str(math.ceil(until))}
        return f"{path}?{urlencode(parameters | {_SIGNATURE: self._signature(path, parameters)})}"

    def check(self, path: str, told: Mapping[str, str]) -> None:
        """Raises NotAdmitted if `signed` did not make this path with these parameters, or the moment is past."""
        parameters = {name: value for name, value in told.items() if name != _SIGNATURE}
        given = told.get(_SIGNATURE, "").encode(errors="replace")
        if not hmac.compare_digest(given, self._signature(path, parameters).encode()):
            raise NotAdmitted("This address was given to nobody: it is changed, or not whole.")
        if int(parameters[_UNTIL]) <= self._clock.now():
            raise NotAdmitted("The time of this address is over: ask for a new one.")

    def _signature(self, path: str, parameters: Mapping[str, str]) -> str:
        message = f"{path}?{urlencode(sorted(parameters.items()), errors='replace')}"
        digest = hmac.digest(self._key(), message.encode(errors="replace"), "sha256")
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
