"""Which names are a secret's."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

CORES = ("pass", "pw", "psw", "secret", "token", "key", "auth", "cred", "cookie", "srf", "sess", "bearer", "jwt",
         "_pat", "sig")  # fmt: skip
"""Each name of a secret has one of these in it, in lower case: cheap to look for."""
MAX_KNOWN = 4_096


class Sign(Enum):
    """What a name says of its value."""

    OWN = "a secret: the user says so"
    SECRET = "a secret, whatever it looks like"  # noqa: S105  # no secret, for once
    MAYBE = "a secret if it looks like one"
    HEADER = "a header that holds secrets up to its end"
    LINK = "a secret in the query of a link"


# Ends of names, letters and digits only: `DB_PASSWORD`, `dbPassword` and `db-password` end alike.
_SECRETS = (
    "password", "passwd", "passphrase", "passcode", "passwort", "pwd", "secret", "secretkey", "secretaccesskey",
    "apikey", "privatekey", "accesskey", "accesskeyid", "accountkey", "storagekey", "sharedkey", "sharedaccesskey",
    "encryptionkey", "signingkey", "masterkey", "sshkey", "authkey", "hmackey", "fernetkey", "subscriptionkey",
    "functionkey", "servicekey", "appkey", "applicationkey", "consumerkey", "token", "jwt", "bearer", "csrf", "xsrf",
    "sessionid", "sessid", "sessionkey", "tlskey", "clientkey", "licensekey", "licencekey",
)  # fmt: skip
_PASSWORDS = re.compile(r"pass|pwd|pw\Z|psw|secret\Z|passphrase")
_FIRST_PARTS = frozenset({"password", "passwd", "pwd", "pw", "passphrase", "token", "secret", "apikey"})
"""Of a name that may be a secret's though another word ends it: `password_ada`."""
_OTHERS_LAST = frozenset({
    "url", "uri", "endpoint", "file", "path", "dir", "name", "names", "type", "id", "ids", "idx", "index", "count", "n",
    "len", "length", "strength", "field", "fields", "label", "prompt", "policy", "reset", "hint", "pattern", "regex",
    "format", "prefix", "suffix", "column", "col", "env", "var", "key", "version", "arn", "scope", "scopes", "manager",
    "backend", "provider", "class", "cls", "at", "ttl", "timeout", "bytes", "size", "limit", "stop", "source", "date",
})  # fmt: skip
"""Words that say of such a name that it tells something about the secret, and not the secret."""
_LAST_PARTS = frozenset({"pass", "pw", "psw", "pswd", "pat"})
"""Too short to be looked for in the middle of a word."""
_MAYBE = ("auth", "session", "credential", "credentials", "cred", "creds", "cookies", "oauth", "signature", "secretid")
_HEADERS = ("authorization", "cookie", "setcookie", "proxyauthorization")
_LINKS = frozenset({"sig", "signature", "credential", "key", "awsaccesskeyid"})
_MODIFIERS = re.compile(
    r"(?:b64|base64|value|val|str|string|text|plain|raw|bytes|hash|digest|prod|production|dev|test|staging|old|new|"
    r"default|encoded|\d{1,4})\Z"
)
"""What may follow the word that matters: `password2`, `token_b64`."""
_NOT = re.compile(
    r"(?:\A|_)(?:bos|eos|pad|sep|cls|mask|unk|stop|special|image|next|continuation|sync|end|start|"
    r"n|num|max|min|no|is|has|first|last|cur|current|prev|peek|sub)_?token\Z"
)
"""Words of a language, places in a list: tokens of another kind."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ODD = re.compile(r"[^a-z0-9]+")


class Names:
    """Knows which names are a secret's: the usual ones, and the user's own `words`."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        words = [word.lower() for word in words]
        self._words = tuple({_ODD.sub("", word) for word in words} - {""})
        self.cores = tuple(dict.fromkeys((*CORES, *(part for word in words if (part := _first_part(word))))))
        self._known: dict[str, Sign | None] = {}

    def sign(self, name: str) -> Sign | None:
        """None for a name that says nothing."""
        try:
            return self._known[name]
        except KeyError:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            found = self._known[name] = self._sign(name)
            return found

    def sign_of_items(self, name: str) -> Sign | None:
        """Of one of them, where the name is that of several: `passwords`."""
        return self.sign(name[:-1]) if name[-1:] in ("s", "S") else None

    def _sign(self, name: str) -> Sign | None:
        parts = [part for part in _ODD.split(_CAMEL.sub("_", name).lower()) if part]
        while len(parts) > 1 and (parts[-1].isdigit() or _MODIFIERS.fullmatch(parts[-1])):
            parts.pop()
        squashed = "".join(parts)
        if squashed.endswith(self._words or ("\0",)):
            return Sign.OWN
        bare = _MODIFIERS.sub("", squashed) or squashed
        if _NOT.search("_".join(parts)):
            return None
        if squashed.endswith(_HEADERS):
            return Sign.HEADER
        if (
            squashed.endswith(_SECRETS)
            or bare.endswith(_SECRETS)
            or (parts and parts[-1].rstrip("0123456789") in _LAST_PARTS)
        ):
            return Sign.SECRET
        if "azureaccountkey" in squashed:  # Spark names the account after it
            return Sign.SECRET
        if squashed in _LINKS or squashed.startswith(("xamz", "xgoog")):
            return Sign.LINK
        is_maybe = squashed.endswith(_MAYBE) or (
            len(parts) > 1 and parts[0] in _FIRST_PARTS and parts[-1] not in _OTHERS_LAST
        )
        return Sign.MAYBE if is_maybe else None


def is_passwords(name: str) -> bool:
    """Whether people choose it themselves, so that it may be a plain word; a service's token never is."""
    return _PASSWORDS.search(_ODD.sub("", name.lower()).rstrip("0123456789")) is not None


def _first_part(word: str) -> str:
    """`patient` of `patient_id`: it stands in `patientId`, too."""
    return next((part for part in _ODD.split(word) if part), "")
