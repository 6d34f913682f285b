"""Where a token was looked for, and how to come by one."""

from daskscope.discovery import Server
from daskscope.whence import where_tokens_are


def test_without_a_token_it_says_where_it_looked_and_what_to_run() -> None:
    assert where_tokens_are(Server("https://example.org"), "/home/ann/data") == (
        "No token for https://example.org was found; looked at: daskscope.token in Dask's configuration, "
        "DASK_DASKSCOPE__TOKEN. To set one: export DASK_DASKSCOPE__TOKEN=...; whoever runs the server makes one "
        "(`daskscope token create NAME`)."
    )


def test_of_this_machine_its_own_files_are_named_and_the_token_is_not_shown() -> None:
    told = where_tokens_are(Server("http://127.0.0.1:8790", "secret-1"), "/home/ann/data")
    assert told.startswith("The token for http://127.0.0.1:8790 came from one of: ")
    assert "/home/ann/data/servers/8790.json" in told
    assert told.endswith("that of a `daskscope serve` is in the file `token` of its data folder.")
    assert "secret-1" not in told
