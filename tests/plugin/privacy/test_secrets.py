"""Secrets as people write them are masked, and nothing of one stays."""

from __future__ import annotations

import random
import string
from collections import Counter

import pytest

from daskscope.privacy.scrubber import Scrubber
from daskscope.privacy.values import MASK
from tests.plugin.privacy.planted import ALNUM, Maker, Planted, planted
from tests.plugin.rig import settings

SEEDS = range(8)
PIECE = 8
"""So many characters of a secret in a row that its text has nowhere else are a part of it."""


def shown(case: Planted, found: str) -> bool:
    """Whether any part of a secret is left in what was found."""
    for secret in case.secrets:
        rest = case.text.replace(secret, "")
        pieces = {secret[n : n + PIECE] for n in range(max(len(secret) - PIECE, 0) + 1)}
        if any(piece in found for piece in pieces if piece not in rest):
            return True
    return False


def test_of_the_planted_secrets_98_percent_are_masked_whole() -> None:
    scrubber = Scrubber(settings())
    cases = [case for seed in SEEDS for case in planted(seed)]
    places = Counter(case.place for case in cases)
    assert len(places) >= 8
    assert sum(len(case.secrets) for case in planted(0)) >= 200
    left = [case.text for case in cases if shown(case, scrubber.text(case.text))]
    assert len(left) <= 0.02 * len(cases), left


@pytest.mark.parametrize(
    "place", ["code", "traceback", "exception", "log", "payload", "command", "configuration", "link"]
)
def test_no_place_is_worse_than_the_others(place: str) -> None:
    scrubber = Scrubber(settings())
    cases = [case for seed in SEEDS for case in planted(100 + seed) if case.place == place]
    left = [case.text for case in cases if shown(case, scrubber.text(case.text))]
    assert len(left) <= 0.06 * len(cases), left


def test_a_text_among_others_is_masked_like_one_alone() -> None:
    """In a page of code, each on lines of its own, as a log or a script has them."""
    scrubber = Scrubber(settings())
    cases = [case for case in planted(3) if case.place in ("code", "log", "configuration") and '"""' not in case.text]
    page = "\n\nx = 1\n".join(case.text for case in cases)
    found = scrubber.text(page)
    left = [case.text for case in cases if any(secret in found for secret in case.secrets)]
    assert len(left) <= 0.02 * len(cases), left
    assert found.count("\n") == page.count("\n")


@pytest.mark.parametrize("scrub", [True, False])
def test_the_own_token_is_masked_always(scrub: bool) -> None:
    random_ = random.Random(5)
    for n in range(200):
        token = "".join(
            random_.choices(string.ascii_letters + string.digits + '-._~+/="\\', k=random_.randrange(8, 60))
        )
        ingest = "dk" + f"s_{Maker(n).of(ALNUM, 12)}_{Maker(n + 1).of(ALNUM, 49)}"
        scrubber = Scrubber(settings(token=token, ingest_token=ingest, scrub=scrub))
        for secret in (token, ingest, "dk" + "s_" + Maker(n + 2).of(ALNUM, 12) + "_" + Maker(n + 3).of(ALNUM, 49)):
            for text in (
                secret,
                f"x{secret}y",
                f"GET /?q={secret}&x=1",
                f"no {secret!r} here\n{secret}",
                f"t:{secret}",
            ):
                found = scrubber.text(text)
                assert secret not in found
                assert "dk" + "s_" not in found


def test_with_scrubbing_off_all_else_stays() -> None:
    scrubber = Scrubber(settings(scrub=False, scrub_words=("pin",), scrub_patterns=("MRN",), token="abcdefgh"))
    for case in planted(1):
        assert scrubber.text(case.text) == case.text
    assert scrubber.text("pin=1234, MRN") == "pin=1234, MRN"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('password = "{}"', 'password = "[secret]"'),
        ("password='{}'", "password='[secret]'"),
        ('  "password": "{}",', '  "password": "[secret]",'),
        ("--password {}", "--password [secret]"),
        ("PASSWORD={} make", "PASSWORD=[secret] make"),
        ('f(api_key="{}", x=1)', 'f(api_key="[secret]", x=1)'),
        (
            'storage_options={{"key": "{}", "secret": "{}"}}',
            'storage_options={{"key": "[secret]", "secret": "[secret]"}}',
        ),
        ('os.environ["X_TOKEN"] = "{}"', 'os.environ["X_TOKEN"] = "[secret]"'),
        ("curl -H 'Authorization: Bearer {}' x", "curl -H 'Authorization: [secret]' x"),
        ("postgresql://ada:{}@db/prod", "postgresql://ada:[secret]@db/prod"),
        ('password = """\n{}\n"""\nx = 1', 'password = """[secret]\n\n"""\nx = 1'),
        ('password = (\n    "{}"\n    "{}"\n)', 'password = (\n    "[secret]"\n    "[secret]"\n)'),
        ("password: |\n  {}\n  {}\nuser: ada", "password: |\n  [secret]\n  [secret]\nuser: ada"),
        ('users = {{"a": 1}}; passwords = ["{}", "{}"]', 'users = {{"a": 1}}; passwords = ["[secret]", "[secret]"]'),
        ('password = os.environ.get("PW") or "{}"', 'password = os.environ.get("PW") or "[secret]"'),
        ("password: 'str' = '{}'", "password: 'str' = '[secret]'"),
        ("@click.option('--password', '-p', default='{}')", "@click.option('--password', '-p', default='[secret]')"),
        ("password = a if b else '{}'", "password = a if b else '[secret]'"),
        ("smtp:\n  password:\n    {}\n  port: 25", "smtp:\n  password:\n    [secret]\n  port: 25"),
    ],
)
def test_what_is_around_a_secret_stays_readable(text: str, found: str) -> None:
    secrets = [Maker(n).password() for n in range(text.count("{}"))]
    assert Scrubber(settings()).text(text.format(*secrets)) == found.format()


@pytest.mark.parametrize("name", ["patient_id", "patientId", "PATIENT-ID", "their_patient_id", "patient_id_2"])
def test_the_users_own_words_are_names_of_secrets(name: str) -> None:
    text = f'{name} = "A1234", count = 3'
    assert Scrubber(settings()).text(text) == text
    assert Scrubber(settings(scrub_words=("patient_id",))).text(text) == f'{name} = "{MASK}", count = 3'


@pytest.mark.parametrize(
    "text",
    [
        "patient_id={}", "patient_id: {}", "row {{'patient_id': {}}}", "Row(patient_id={}, ward=3)",
        "visits.patient_id == {}", "WHERE patient_id = {}", 'df.query("patient_id == {}")', "PatientID is {}",
        "bad row: patient_id={}, ward=3",
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", ["512", "7", "1234567", "asthma", "A-12"])
def test_of_a_name_that_the_user_named_nothing_is_guessed(text: str, value: str) -> None:
    found = Scrubber(settings(scrub_words=("patient_id",))).text(text.format(value))
    assert found == text.format(MASK)


def test_numbers_of_the_users_names_are_masked_in_lists_and_tables() -> None:
    scrubber = Scrubber(settings(scrub_words=("patient_id",)))
    assert scrubber.text("patient_ids = [77, 'b8']") == f"patient_ids = [{MASK}, '{MASK}']"
    assert scrubber.text("patient_id    1234567\nward    3") == f"patient_id    {MASK}\nward    3"


@pytest.mark.parametrize(
    "text",
    [
        "patient_id = next(ids)",
        "patient_id: int",
        "f(patient_id=row.patient_id)",
        "patient_id=None",
        "patient_id: str = ''",
    ],
)
def test_code_that_fetches_what_the_user_named_stays(text: str) -> None:
    assert Scrubber(settings(scrub_words=("patient_id",))).text(text) == text


@pytest.mark.parametrize("value", ["letmein!", "swordfish", "opensesame"])
@pytest.mark.parametrize(
    "text", ["logging in with password={}, retries=3", "User(password={}, name=x)", "Password: {}"]
)
def test_a_password_may_be_a_plain_word(text: str, value: str) -> None:
    assert Scrubber(settings()).text(text.format(value)) == text.format(MASK)


def test_digits_of_a_card_are_masked_if_they_are_grouped_or_a_word_speaks_of_one() -> None:
    scrubber = Scrubber(settings())
    grouped = Maker(4).card()
    digits = "".join(filter(str.isdecimal, grouped))
    assert scrubber.text(f"paid with {grouped}") == "paid with [secret]"
    assert scrubber.text(f"credit card {digits}") == "credit card [secret]"
    assert scrubber.text(f"order {digits}") == f"order {digits}"
