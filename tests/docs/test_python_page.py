"""Every example of docs/reference/python.md, in its order, against a real server; and every public name on the page."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import dask.config
import pytest

import daskscope
from tests.docs import cli_team
from tests.docs.python_names import class_names
from tests.docs.reference import page
from tests.end_to_end.conftest import in_this_process
from tests.lambdas.serving import Serving

_BLOCK = re.compile(r"(?:^ {4}.*\n|^\n)+", re.M)


def examples() -> list[str]:
    """Indented blocks of Python above the generated part."""
    text = page("python").read_text(encoding="utf-8").partition("<!-- generated")[0]
    found = [inspect.cleandoc(block[0]) for block in _BLOCK.finditer(text) if block[0].strip()]
    return [block for block in found if not block.startswith("pip ")]


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server that has the history of a small team."""
    folder = tmp_path_factory.mktemp("python-page")
    cli_team.make(folder / "data")
    with Serving(folder) as server, dask.config.set({"daskscope": {"server": server.url, "data": str(server.shared)}}):
        yield server


def test_every_example_runs(
    team: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = examples()
    assert len(blocks) >= 10
    with in_this_process() as client:
        names = {"__name__": "example", "client": client}
        for block in blocks:
            exec(compile(block, page("python"), "exec"), names)
    out = capsys.readouterr().out
    assert "Did it finish?" in out
    assert "No cluster 1003 in account local" in out
    assert (tmp_path / "profile.json").stat().st_size > 100


def test_every_public_name_has_its_section() -> None:
    headings = set(re.findall(r"^### (\w+)$", page("python").read_text(encoding="utf-8"), re.M))
    functions = {name for name in daskscope.__all__ if not inspect.isclass(getattr(daskscope, name))} - {"__version__"}
    assert headings == functions | set(class_names())


def test_every_public_name_says_what_it_is() -> None:
    for name in daskscope.__all__:
        assert name == "__version__" or inspect.getdoc(getattr(daskscope, name)), name


def test_a_lake_that_is_read_directly_tells_the_same(team: Serving) -> None:
    """Each list of the account, but for what needs a server."""
    with daskscope.connect() as served, daskscope.connect(team.data) as direct:
        for name in ("list_exceptions", "list_events", "list_deaths", "list_prefixes", "list_code", "logs"):
            told = getattr(served, name)()
            assert told, name
            assert told == getattr(direct, name)(), name
        assert [each["id"] for each in direct.list_clusters()] == [each["id"] for each in served.list_clusters()]
        assert direct.list_clusters().url is None
        with pytest.raises(daskscope.DaskscopeError, match="read"):
            direct.close(1)


def test_a_token_is_made_used_and_ended(team: Serving) -> None:
    made = daskscope.create_token("a reader", expires="1 hour")
    with daskscope.connect(team.url, made["token"]) as reader:
        assert reader.whoami()["scopes"] == ["read"]
        with pytest.raises(daskscope.PermissionDenied, match="admin"):
            reader.create_token("another")
    assert made["key_id"] in [each["key_id"] for each in daskscope.list_tokens()]
    daskscope.revoke_token(made["key_id"])
    (row,) = [each for each in daskscope.list_tokens() if each["key_id"] == made["key_id"]]
    assert row["revoked"]
    with pytest.raises(daskscope.BadRequest, match="name is of 1 to"):
        daskscope.create_token("")


def test_a_list_that_asks_for_what_is_not_there_is_told_what_is(team: Serving) -> None:
    with pytest.raises(daskscope.BadRequest, match=r"sort is 'size'; allowed: .*cost"):
        daskscope.list_clusters(sort="size")
    with pytest.raises(daskscope.BadRequest, match=r"(?s)Catalog Error.*Tables are audit, catalog, clusters"):
        daskscope.sql("SELECT * FROM nothing")
