"""Where a token was looked for, for who is not let in."""

from __future__ import annotations

from urllib.parse import urlsplit

from daskscope import login
from daskscope.discovery import Server, is_loopback, rendezvous


def where_tokens_are(server: Server, data: str) -> str:
    """Sentences: which places were looked at, and what to do."""
    again = f"`daskscope login --server {server.url}`"
    if server.origin == "login":
        return f"That token is of `daskscope login` (in {login.path()}). To get another: {again}."
    if server.origin == "given":
        return f"It is the one that was given with the call. To get one that is yours: {again}."
    places = "daskscope.token in Dask's configuration, DASK_DASKSCOPE__TOKEN"
    also = ""
    if is_loopback(server.url):
        port = urlsplit(server.url).port or 80
        places += f", {rendezvous(data, port)}"
        also = "; that of a `daskscope serve` is in the file `token` of its data folder"
    if server.token:
        return f"The token for {server.url} came from one of: {places}. To get another: {again}{also}."
    return (
        f"No token for {server.url} was found; looked at: {places}, {login.path()}. To get one: {again}, or export "
        f"DASK_DASKSCOPE__TOKEN=TOKEN{also}."
    )
