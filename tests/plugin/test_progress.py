import io
from typing import Any

import pytest

import daskscope
from daskscope.progress import AFTER_S, Progress, is_watched
from tests.plugin.api_server import Answer


def api(path: str, query: dict[str, str]) -> Answer:
    start = int(query.get("cursor", 0))
    rows = [{"id": n} for n in range(start, start + 100)]
    return 200, {"items": rows, "cursor": str(start + 100) if start < 200 else None, "total": 300}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen(text: str) -> str:
    """What stands in the line after all of it was written."""
    shown, at = list[str](), 0
    for letter in text:
        if letter == "\r":
            at = 0
            continue
        shown[at : at + 1] = letter
        at += 1
    return "".join(shown).rstrip()


def test_what_is_over_in_a_second_says_nothing() -> None:
    out = Terminal()
    with Progress(stream=out, clock=lambda: 5.0) as progress:
        progress.told(100, 300)
    assert out.getvalue() == ""


@pytest.mark.parametrize(
    ("n", "total", "limit", "told"),
    [(100, 3_000, None, "100 of 3,000 records"), (1_200, None, None, "1,200 records"),
     (100, 3_000, 500, "100 of 500 records"), (100, None, 500, "100 of 500 records"), (9, 7, None, "9 of 9 records")],
)  # fmt: skip
def test_afterwards_it_says_how_far_it_is_and_wipes_it_out(
    n: int, total: int | None, limit: int | None, told: str
) -> None:
    out, times = Terminal(), iter([0.0, AFTER_S, AFTER_S + 1])
    with Progress(limit, stream=out, clock=lambda: next(times)) as progress:
        progress.told(n + 1_000_000, None)
        progress.told(n, total)
        assert screen(out.getvalue()) == told
    assert screen(out.getvalue()) == ""
    assert "\n" not in out.getvalue()


def test_nobody_looks_at_a_file() -> None:
    out, times = io.StringIO(), iter([0.0, 9.0])
    with Progress(stream=out, clock=lambda: next(times)) as progress:
        progress.told(1, 2)
    assert out.getvalue() == ""
    assert not is_watched(out)
    assert is_watched(Terminal())
    assert is_watched(type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})())


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(100))
    monkeypatch.setattr(Progress.__init__, "__kwdefaults__",
                        {"stream": None, "clock": lambda: float(next(times)), "shown": True})  # fmt: skip


def test_a_long_list_tells_of_itself_on_stderr_alone(
    serve: Any, clock: None, capsys: pytest.CaptureFixture[str]
) -> None:
    serve(account="acme")
    assert len(daskscope.list_clusters()) == 300
    out, err = capsys.readouterr()
    assert out == ""
    assert "200 of 300 records" in err
    assert screen(err) == ""
