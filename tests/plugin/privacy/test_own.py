"""The user's own patterns: masked, and never what holds the scheduler up."""

from __future__ import annotations

import itertools

import pytest

from daskscope.errors import SettingsError
from daskscope.parsing import patterns
from daskscope.privacy.own import MOST_CPU_S, STEP, WINDOW, OwnPatterns, check
from daskscope.privacy.scrubber import Scrubber
from tests.plugin.rig import settings


@pytest.mark.parametrize(
    "pattern",
    [r"MRN-\d+", r"patient[ _-]?id\s{0,3}[:=]\s{0,3}\d+", r"(?i)acme-[a-z]{3}(?:-\d{4}){3}", r"\b\d{3}-\d{2}-\d{4}\b",
     r"(?<=id )\w+",
     r"a|b|cd", r"[A-Z]{2}\d{6}[A-Z]?", r"(?P<q>['\"])x(?P=q)", r"(?:ab)+", r"\w++-\w++-\w++-\w++"],
)  # fmt: skip
def test_what_ends_is_taken(pattern: str) -> None:
    check(pattern)
    assert patterns("analytics.scrub.patterns", [pattern]) == (pattern,)


@pytest.mark.parametrize(
    "pattern",
    [r"(a+)+$", r"(a|aa)+$", r"(?:a?){40}a{40}", r"(\w*\s?)*x", r"(?=(b+)+c)", r"((ab)*c?)*", r"\w*\w*\w*x",
     r"\w*\w*x|\w*\w*y",
     r"(?:a|b|cd){2,}",
     r"a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?aaaaaaaaaaaaaaa"],
)  # fmt: skip
def test_what_could_take_for_ever_is_refused_where_it_is_set(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"repeat|alternatives"):
        check(pattern)
    with pytest.raises(SettingsError, match=r"scrub\.patterns is .* allowed: a list of regular expressions"):
        patterns("analytics.scrub.patterns", [pattern])


def test_what_matches_is_masked_in_every_text() -> None:
    scrubber = Scrubber(settings(scrub_patterns=(r"MRN-\d+", "tea ?pot")))
    assert scrubber.text("no MRN-123, MRN-4\nteapot, tea pot") == "no [secret], [secret]\n[secret], [secret]"
    assert scrubber.text("MRN") == "MRN"


def test_a_pattern_that_matches_the_mask_changes_nothing() -> None:
    scrubber = Scrubber(settings(scrub_patterns=("secret|cret.", ".+x")))
    once = scrubber.text('password = "hunter2" and x\n[secret]')
    assert once == "[secret]\n[secret]"
    assert scrubber.text(once) == once


@pytest.mark.parametrize("length", [5, STEP, 3 * WINDOW])
def test_wherever_in_a_long_line_it_stands_it_is_masked_whole(length: int) -> None:
    for before in range(2 * WINDOW):
        line = "," * before + "MRN-" + "7" * (length - 4) + " rest" + "," * 300
        assert OwnPatterns([r"MRN-\d+"]).mask(line) == "," * before + "[secret] rest" + "," * 300


def test_patterns_that_took_too_long_leave_the_rest_of_a_message_masked() -> None:
    ticks = itertools.count(0, MOST_CPU_S / 4)
    own = OwnPatterns(["x"], cpu=lambda: next(ticks))
    assert own.mask("a\nx\nc\nd\ne\r\n\nf") == "a\n[secret]\nc\nd\n[secret]\r\n\n[secret]"
    assert own.mask("g") == "[secret]"
    own.refresh()
    assert own.mask("g") == "g"


def test_patterns_are_weighed_together() -> None:
    slow = r"\w*\w*-"
    assert patterns("analytics.scrub.patterns", [slow, *["x" + r"\d+"] * 20])
    with pytest.raises(SettingsError, match="repeats without an end"):
        patterns("analytics.scrub.patterns", [slow, slow])
    alternatives = "|".join(rf"\w*\w*{letter}" for letter in "!@#%&")
    with pytest.raises(SettingsError, match="repeats without an end"):
        patterns("analytics.scrub.patterns", [alternatives])


def test_the_slowest_that_is_taken_comes_to_an_end_on_the_worst_text() -> None:
    pattern = r"\w*\w*-"
    check(pattern)
    own = OwnPatterns([pattern])
    found = own.mask("a" * 1_000_000)
    assert found == "[secret]", "its time was over before the line was"
