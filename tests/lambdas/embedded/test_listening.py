import socket

import pytest

from daskscope.errors import SettingsError
from daskscope_lambdas.embedded import credentials
from daskscope_lambdas.embedded.listening import (
    AS_ASKED,
    Proxied,
    checked_url,
    hosts,
    known_as,
    listen,
    listen_beside,
    port_of,
)

LOOPBACK = {"127.0.0.1", "localhost", "[::1]"}


def test_reports_have_the_next_port_or_on_this_machine_another_if_that_is_taken() -> None:
    with listen("127.0.0.1", 0) as first:
        try:
            taken = socket.create_server(("127.0.0.1", port_of(first) + 1))
        except OSError:
            taken = None  # by somebody else: as good
        with listen_beside(first, "127.0.0.1", None) as beside:
            assert port_of(beside) not in (port_of(first), port_of(first) + 1)
        if taken:
            taken.close()
            with listen_beside(first, "127.0.0.1", None) as beside:
                assert port_of(beside) == port_of(first) + 1


def test_where_others_have_to_reach_it_a_port_that_is_taken_is_an_error() -> None:
    with listen("0.0.0.0", 0) as first, socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        with pytest.raises(SettingsError, match="--reports-port"):
            listen_beside(first, "0.0.0.0", taken.getsockname()[1])


def test_names_are_those_of_this_machine_and_of_the_proxy_or_any_where_others_may_ask() -> None:
    proxied = Proxied(url="https://dask.example:8443", reports_url="https://reports.example", hosts=frozenset({"hub"}))
    assert hosts("127.0.0.1", AS_ASKED) == LOOPBACK
    assert hosts("127.0.0.2", AS_ASKED) == LOOPBACK | {"127.0.0.2"}
    assert hosts("localhost", proxied) == LOOPBACK | {"dask.example", "reports.example", "hub"}
    assert hosts("0.0.0.0", proxied) is None


@pytest.mark.parametrize("reports_url", [None, "http://reports.example"])
def test_encrypted_pages_want_encrypted_reports(reports_url: str | None) -> None:
    with pytest.raises(SettingsError, match="--reports-url") as refused:
        Proxied(url="https://dask.example", reports_url=reports_url)
    assert "https://dask.example (--url)" in str(refused.value)
    Proxied(url="http://dask.example", reports_url=reports_url)
    Proxied(url="https://dask.example", reports_url="https://dask.example:8443")


@pytest.mark.parametrize("reports_url", ["https://dask.example", "https://DASK.example:443"])
def test_reports_have_no_origin_of_the_pages(reports_url: str) -> None:
    with pytest.raises(SettingsError, match="by another name or port than --url"):
        Proxied(url="https://dask.example", reports_url=reports_url)


def test_it_is_known_whether_reports_differ_by_their_port_alone() -> None:
    one, other = "https://dask.example", "https://reports.example"
    assert Proxied(url=one, reports_url=f"{one}:8443").has_one_name
    assert not Proxied(url=one, reports_url=other).has_one_name
    assert not AS_ASKED.has_one_name


@pytest.mark.parametrize(
    ("host", "name", "known"),
    [
        ("0.0.0.0", "gpu-box", "gpu-box"), ("::", "gpu-box.example", "gpu-box.example"),
        ("0.0.0.0", "", "127.0.0.1"), ("::", "Jörgs Mac", "[::1]"),
        ("127.0.0.1", "gpu-box", "127.0.0.1"), ("10.0.0.7", "gpu-box", "10.0.0.7"), ("fe80::1", "gpu-box", "[fe80::1]"),
    ],
)  # fmt: skip
def test_others_reach_all_addresses_by_the_machines_name(
    monkeypatch: pytest.MonkeyPatch, host: str, name: str, known: str
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: name)
    assert known_as(host) == known


@pytest.mark.parametrize(
    "url",
    [
        "",
        "dask.example",
        "ftp://dask.example",
        "https://",
        "https://h/path",
        "https://h?x",
        "https://h#x",
        "https://u:p@h",
    ],
)
def test_an_address_is_that_of_a_host_and_nothing_more(url: str) -> None:
    with pytest.raises(SettingsError, match="--url"):
        checked_url("--url", url)


@pytest.mark.parametrize("url", ["https://dask.example", "http://10.0.0.7:8790", "https://[::1]:8443"])
def test_an_address_stays_as_it_is_but_for_a_slash(url: str) -> None:
    assert checked_url("--url", url) == checked_url("--url", f"{url}/") == url


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("ann", "ann"), ("ann@acme.org", "ann@acme.org"), ("ACME\\ann", "ACME-ann"), ("_svc", "svc"), ("Jörg", "J-rg"),
        ("", "user"), ("._-", "user"), ("李", "user"), ("a" * 80, "a" * 64),
    ],
)  # fmt: skip
def test_who_runs_a_server_has_a_name_that_people_can_have(
    monkeypatch: pytest.MonkeyPatch, told: str, name: str
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: told)
    assert credentials.os_user() == name


@pytest.mark.parametrize("error", [OSError, KeyError])
def test_a_process_of_nobody_has_a_name_all_the_same(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def nobody() -> str:
        raise error

    monkeypatch.setattr("getpass.getuser", nobody)
    assert credentials.os_user() == "user"
