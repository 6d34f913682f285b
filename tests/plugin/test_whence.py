"""Where a token was looked for, and how to come by one."""

import pytest

from daskscope import login
from daskscope.discovery import Origin, Server
from daskscope.whence import where_tokens_are


def test_without_a_token_it_says_where_it_looked_and_what_to_run() -> None:
    assert where_tokens_are(Server("https://example.org"), "/home/ann/data") == (
        "No token for https://example.org was found; looked at: daskscope.token in Dask's configuration, "
        f"DASK_DASKSCOPE__TOKEN, {login.path()}. To get one: `daskscope login --server https://example.org`, or export "
        "DASK_DASKSCOPE__TOKEN=TOKEN."
    )


@pytest.mark.parametrize(("origin", "whence"), [("login", "of `daskscope login` (in "), ("given", "with the call")])
def test_a_token_of_a_login_or_of_a_call_is_said_to_be_that(origin: Origin, whence: str) -> None:
    told = where_tokens_are(Server("https://example.org", "secret-1", origin=origin), "/home/ann/data")
    assert whence in told
    assert "`daskscope login --server https://example.org`" in told
    assert "secret-1" not in told


def test_of_this_machine_its_own_files_are_named_and_the_token_is_not_shown() -> None:
    told = where_tokens_are(Server("http://127.0.0.1:8790", "secret-1"), "/home/ann/data")
    assert told.startswith("The token for http://127.0.0.1:8790 came from one of: ")
    assert "/home/ann/data/servers/8790.json" in told
    assert told.endswith("that of a `daskscope serve` is in the file `token` of its data folder.")
    assert "secret-1" not in told
