"""What lets the user of this machine in: their name, their tokens, and where their programs find both."""

from __future__ import annotations

import getpass
import json
import os
import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from daskscope.errors import NotFound, NotLoggedIn
from daskscope_lambdas.ports import Scope
from daskscope_lambdas.service.gate import Gate
from daskscope_lambdas.service.people import MAX_USER, People, checked_user
from daskscope_lambdas.service.tickets import Link, sign_in_link
from daskscope_lambdas.service.tokens import Principal, mint
from daskscope_lambdas.wiring import Adapters


def os_user() -> str:
    """The name of who runs this process, as a user's here; `user` where there is none that could be."""
    try:
        told = getpass.getuser()
    except (OSError, KeyError):  # A container's user that nobody named; KeyError before Python 3.13.
        return "user"
    name = re.sub(r"[^A-Za-z0-9._@+-]+", "-", told)[:MAX_USER]
    try:
        return checked_user(name.lstrip("._@+-"))
    except ValueError:
        return "user"


def admit(world: Adapters, account: str, user: str) -> str:
    """Whoever runs a server has all of it at hand, so they look after its account; also if somebody took them out.
    Returns their name as it is spelled here."""
    people = People(world.users, world.clock)
    user = people.spelled(user)
    with suppress(NotFound):
        if people.find(account, user).role == "admin":
            return user
    return people.put(account, user, "admin", "daskscope serve").user


def keep_token(
    home: Path, world: Adapters, account: str, name: str, scopes: Iterable[Scope], user: str | None
) -> tuple[str, Principal]:
    """A token of this data folder, in a file that only this user may read, and what it may: made at the first start,
    and anew where an earlier release made it with fewer scopes, or for nobody."""
    path, wanted = home / name, frozenset(scopes)
    gate = Gate(world.tokens, world.users, world.clock)
    with suppress(FileNotFoundError, NotLoggedIn):
        text = path.read_text().strip()
        found = gate.principal(f"Bearer {text}")
        if found.scopes >= wanted and found.user == user:
            return text, found
    text, _ = mint(world.tokens, world.clock, account, wanted, f"daskscope serve: {name}", user=user)
    _write_private(path, text + "\n")
    return text, gate.principal(f"Bearer {text}")


def link_of(world: Adapters, token: Principal) -> Link:
    """Lets a browser in once, as long as the token is good."""
    return sign_in_link(world.tickets, world.clock, token.account, token.scopes, user=token.user, parent=token.key_id)


def leave_address(path: Path, url: str, token: str, ingest_token: str, data: Path, address: str) -> None:
    """Where plugins and clients of the same user find the server, and at which address other people do."""
    private_folder(path.parent)
    found = {"url": url, "token": token, "ingest_token": ingest_token, "pid": os.getpid(), "data": str(data)}
    _write_private(path, json.dumps(found if address == url else found | {"address": address}))


def take_address_back(path: Path) -> None:
    with suppress(OSError, ValueError, KeyError):
        if json.loads(path.read_text())["pid"] == os.getpid():
            path.unlink()


def private_folder(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _write_private(path: Path, text: str) -> None:
    """Whole or not at all, and 0600 from the first byte."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    draft.replace(path)
