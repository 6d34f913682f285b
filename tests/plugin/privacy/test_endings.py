"""A text that was cut in the midst of a secret: what is left of it does not look like one any more."""

from __future__ import annotations

import pytest

from daskscope import wire
from daskscope.agent.profile import frame_text
from daskscope.agent.texts import MAX_TEXT
from daskscope.collect.bounds import worker_name
from daskscope.collect.computations import _cut as cut_code
from daskscope.collect.exceptions import _cut as cut_text
from daskscope.collect.payloads import MAX_DETAIL, as_json, as_key
from daskscope.privacy.scrubber import Scrubber
from tests.plugin.privacy.planted import SERVICES, Maker
from tests.plugin.rig import settings

OWN = "aT0k/en.of-ours+12"
SHORTEST = 14
"""So much begins every key of some services."""


def beginnings(secret: str) -> list[str]:
    return [secret[:n] for n in range(SHORTEST, len(secret))]


def secrets() -> list[tuple[str, str, str]]:
    """What stands before each, the secret, and its name."""
    maker = Maker(11)
    bare = [("refused: ", maker.key_of(service), service) for service in SERVICES if service != "card"]
    return [
        *bare,
        ('password = "', maker.token(), "password"),
        ("password=", maker.token(), "unquoted"),
        ("postgresql://ada:", maker.token(), "link"),
        ('{"Authorization": "Bearer ', maker.token(), "header"),
        ("", OWN, "own token"),
    ]


@pytest.mark.parametrize(("before", "secret", "name"), secrets(), ids=[name for *_, name in secrets()])
def test_nothing_of_a_secret_that_was_cut_stays(before: str, secret: str, name: str) -> None:
    scrubber = Scrubber(settings(token=OWN))
    for n in range(SHORTEST, len(secret), 3):
        room = MAX_TEXT - len(before) - n
        text = cut_text("word " * (room // 5) + " " * (room % 5) + before + secret + " and on it goes")
        assert text.endswith("more characters)"), "it was cut"
        found = scrubber.text(text)
        assert secret[:SHORTEST] not in found, (name, n)
        assert found.endswith("more characters)")


@pytest.mark.parametrize(("before", "secret", "name"), secrets(), ids=[name for *_, name in secrets()])
def test_nothing_of_one_stays_in_code_that_was_cut(before: str, secret: str, name: str) -> None:
    scrubber = Scrubber(settings(token=OWN))
    n = len(secret) // 2
    room = (64 << 10) - len(before) - n
    text = cut_code("x = 1\n" * (room // 6) + " " * (room % 6) + before + secret + "\ny = 2\n")
    found = scrubber.text(text)
    assert secret[:SHORTEST] not in found
    assert found.endswith("bytes of this source here")
    assert found.count("\n") == text.count("\n")


@pytest.mark.parametrize(("before", "secret", "name"), secrets(), ids=[name for *_, name in secrets()])
def test_nothing_of_one_stays_in_a_payload_that_was_cut(before: str, secret: str, name: str) -> None:
    scrubber = Scrubber(settings(token=OWN))
    for n in beginnings(secret)[::7]:
        room = MAX_DETAIL - len(before) - len(n)
        event = wire.Event(
            no=0, at_ms=0, topic="t", action="a", detail=as_json({"m": "w " * (room // 2) + before + secret})
        )
        message = wire.Message(
            v=1, cluster="c", boot="b", seq=0, made_at_ms=0, uptime_us=0, next_s=1, events=[event],
        )  # fmt: skip
        scrubber.message(message)
        assert secret[: SHORTEST + 2] not in message.events[0].detail, (name, n)


def test_nothing_of_one_stays_in_a_name_that_was_cut() -> None:
    secret = Maker(3).key_of("openai")
    found = Scrubber(settings()).text(as_key(f"load-{'x' * 170} {secret}"))
    assert secret[:12] not in found
    assert found.startswith("load-xxx")


def test_nothing_of_the_own_token_stays_where_a_name_or_a_file_is_cut() -> None:
    scrubber = Scrubber(settings(token=OWN))
    for n in range(60, 100):
        assert OWN[:6] not in scrubber.text(worker_name("w" * n + " " + OWN))
    for n in range(90, 120):
        folder = OWN.replace("/", "_")
        found = Scrubber(settings(token=folder)).text(frame_text(f"/srv/{folder}/{'x' * n}.py", 1, "f"))
        assert folder[-6:] not in found
    begun = "dk" + "s_" + "aB3" * 4
    assert begun[:8] not in scrubber.text(worker_name("w" * 85 + begun + "_" + "x" * 49))


@pytest.mark.parametrize(
    "before",
    ["auth=('ada', '", "job --password ", "curl -u ada:", "mail:\n  password:\n    ", "aws configure, then "],
)
@pytest.mark.parametrize("n", [5, 9])
def test_where_a_mark_tells_of_a_cut_less_is_enough(before: str, n: int) -> None:
    secret = "c0rrectH0rse" + Maker(1).of("abcXYZ234", 20)
    room = MAX_TEXT - len(before) - n
    text = cut_text("word " * (room // 5) + " " * (room % 5) + before + secret)
    assert text.endswith("more characters)")
    assert secret[:n] not in Scrubber(settings()).text(text)


def test_half_a_card_at_a_mark_is_masked() -> None:
    text = cut_text("word " * ((MAX_TEXT - 9) // 5) + "4111 1111" + " 1111 1111")
    assert "4111" not in Scrubber(settings()).text(text)


def test_the_end_of_a_cut_text_that_hides_nothing_stays() -> None:
    for words in ("and so on it went", "in load_parquet", "KeyError: 'name'", "tcp://10.0.0.1:87"):
        text = cut_text("word " * (MAX_TEXT // 5) + words + " more" * 9)
        assert Scrubber(settings()).text(text) == text
