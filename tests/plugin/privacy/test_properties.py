"""What holds for any text: masking twice is masking once, lines keep their number, nothing raises or hangs."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskscope.privacy import keys, pairs, shapes, unquoted, values
from daskscope.privacy.scrubber import Scrubber
from tests.plugin.privacy.planted import TEMPLATES, planted
from tests.plugin.rig import settings

SCRUBBER = Scrubber(settings(token="cretx-7-token"))
PARTS = sorted(
    {part for _, template in TEMPLATES for part in re.findall(r"\w+|\W", template)}
    | {form.trigger for form in (*keys.FORMS, *shapes.FORMS)}
    | {
        values.MASK,
        "\r\n",
        "\x85",
        "\u2028",
        "\0",
        "\ud800",
        "İ",
        '"""',
        "'''",
        "... (12 more characters)",
        "4111 1111 1111 1111",
    }
)
texts = st.text() | st.lists(st.sampled_from(PARTS), max_size=40).map("".join)


@given(texts)
def test_masking_twice_is_masking_once(text: str) -> None:
    found = SCRUBBER.text(text)
    assert SCRUBBER.text(found) == found


@given(texts)
def test_lines_keep_their_number(text: str) -> None:
    assert len(SCRUBBER.text(text).splitlines()) == len(text.splitlines())


@given(texts, st.integers(0, 60))
def test_the_own_token_never_stays(text: str, place: int) -> None:
    assert "cretx-7-token" not in SCRUBBER.text(text[:place] + "cretx-7-token" + text[place:])


def test_planted_texts_are_masked_once_and_for_all() -> None:
    for seed in range(3):
        for case in planted(seed):
            found = SCRUBBER.text(case.text)
            assert SCRUBBER.text(found) == found
            assert len(found.splitlines()) == len(case.text.splitlines())


HOSTILE = [
    *sorted({form.trigger for form in (*keys.FORMS, *shapes.FORMS)}),
    *("password=", 'password="', 'password = \\"', "-----BEGIN PRIVATE KEY-----.", "//a:", "a:bbbbbb@", "--password "),
    *(
        "Authorization: a",
        "?token=",
        "password=" + "(" * 50,
        "password = " + " " * 70 + "(",
        "token= or ",
        '"password", "',
    ),
    *(
        "passwords = [",
        "secret: |\n  x\n",
        'auth=("a",',
        'login("a", ',
        "eyJaaaaaaaaaaaaaa.",
        "4111 ",
        "41111111",
        "mysql -p",
    ),
    *(
        '"--password", a=b, ',
        "password:\n  ",
        '"x" == password ',
        "password = a else ",
        'f(password %s", ',
        "secrets['a'] = ",
    ),
    *(
        "setattr(a, 'password', ",
        "password: Annotated[",
        "dks_",
        "passwords = {",
        "password: 'a",
        "password_by_a = [(",
        "redis",
    ),
    *("\\", '"', "'", '"""', "password='''", values.MASK, " ", "\n", "a", "=", "{", "name: PASSWORD\n value:"),
]


def assert_ends(part: str, n_characters: int) -> None:
    """A pattern that went back over the text for each place where it begins would take hours."""
    text = (part * (n_characters // len(part) + 1))[:n_characters]
    found = SCRUBBER.text(text)
    assert len(found.splitlines()) == len(text.splitlines())


def test_long_hostile_texts_do_not_hang() -> None:
    for part in HOSTILE:
        assert_ends(part, 5_000)


@pytest.mark.long
@pytest.mark.parametrize("part", HOSTILE)
def test_100_kb_of_a_hostile_text_do_not_hang(part: str) -> None:
    assert_ends(part, 100_000)


def test_a_line_of_a_megabyte_is_masked() -> None:
    random_ = random.Random(0)
    filler = "".join(random_.choices("abcdefghij ,", k=1 << 20))
    found = SCRUBBER.text(f'{filler} password="hunter2" {filler}')
    assert "hunter2" not in found
    assert len(found) > 2 << 20


def test_after_2_000_names_of_secrets_the_rest_is_masked_unseen() -> None:
    text = "token = None\n" * 2_000 + "last = 1\ntoken = x1\nplain words\n"
    found = SCRUBBER.text(text)
    assert found.startswith("token = None\n" * 2_000 + "last = 1\n[secret]\n")
    assert "plain" not in found
    assert found.count("\n") == text.count("\n")


def patterns() -> list[re.Pattern[str]]:
    ours = [value for module in (pairs, unquoted, values, shapes) for value in vars(module).values()]
    return [p for p in [*ours, *(form.pattern for form in (*keys.FORMS, *shapes.FORMS))] if isinstance(p, re.Pattern)]


def test_no_pattern_repeats_a_repeat_without_end() -> None:
    """One within another is what makes time double with each letter."""
    parser: object = vars(re)["_parser"]
    assert len(patterns()) > 100
    for pattern in patterns():
        tree = parser.parse(pattern.pattern, pattern.flags)  # type: ignore[attr-defined]
        assert not nested(tree, within=False), pattern


@pytest.mark.parametrize("pattern", [r"(?:a*b)*", r"(?:x|(?:\w+ )*)+", r"(?=(?:a+)*)"])
def test_one_that_does_is_found(pattern: str) -> None:
    parser: object = vars(re)["_parser"]
    assert nested(parser.parse(pattern), within=False)  # type: ignore[attr-defined]


def nested(tree: object, *, within: bool) -> bool:
    for operation, argument in list(tree):  # type: ignore[call-overload]
        name = str(operation)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            endless = int(argument[1]) > 1_000 and name != "POSSESSIVE_REPEAT"
            if (endless and within) or nested(argument[2], within=within or endless):
                return True
        elif name == "BRANCH":
            if any(nested(branch, within=within) for branch in argument[1]):
                return True
        elif name in ("SUBPATTERN", "ASSERT", "ASSERT_NOT") and nested(argument[-1], within=within):
            return True
    return False
