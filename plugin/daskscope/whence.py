"""Where a token was looked for, for who is not let in."""

from __future__ import annotations

from urllib.parse import urlsplit

from daskscope.discovery import Server, is_loopback, rendezvous


def where_tokens_are(server: Server, data: str) -> str:
    """Sentences: which places were looked at, and what to do."""
    places = "daskscope.token in Dask's configuration, DASK_DASKSCOPE__TOKEN"
    makes = "whoever runs the server makes one (`daskscope token create NAME`)"
    if is_loopback(server.url):
        port = urlsplit(server.url).port or 80
        places += f", {rendezvous(data, port)}"
        makes = "that of a `daskscope serve` is in the file `token` of its data folder"
    if server.token:
        return f"The token for {server.url} came from one of: {places}. To set another: {_SET}; {makes}."
    return f"No token for {server.url} was found; looked at: {places}. To set one: {_SET}; {makes}."


_SET = "export DASK_DASKSCOPE__TOKEN=..."
