import json
import stat
from pathlib import Path
from typing import Any

import pytest

from daskscope_infra.commands import outputs_file
from daskscope_infra.commands.first_tokens import FirstTokens

OUTPUTS = {"Address": "https://of.a.test", "Bucket": "b"}
MADE = FirstTokens(reporting="dks_i", reading="dks_r", admin="dks_a", user="ann", link="https://of.a.test/login?code=x")
HELD = {"token": "dks_a", "ingest_token": "dks_i", "read_token": "dks_r", "user": "ann", "sign_in_url": MADE.link}
NONE = dict.fromkeys(HELD)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "outputs.json"


def tokens(path: Path) -> dict[str, Any]:
    held = json.loads(path.read_text())
    return {key: held[key] for key in HELD}


def test_what_was_made_stands_there_for_its_owner_alone(path: Path) -> None:
    path.write_text("[of something else]")
    path.chmod(0o644)
    outputs_file.write(path, "main", OUTPUTS, MADE)
    assert json.loads(path.read_text()) == {
        "address": "https://of.a.test", "account": "main", "outputs": OUTPUTS, **HELD
    }  # fmt: skip
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_tokens_of_before_stay_if_none_are_made(path: Path) -> None:
    outputs_file.write(path, "main", OUTPUTS, MADE)
    path.chmod(0o644)
    outputs_file.write(path, "main", {**OUTPUTS, "Bucket": "another"}, None)
    assert tokens(path) == HELD
    assert json.loads(path.read_text())["outputs"]["Bucket"] == "another"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(("tenant", "address"), [("main", "https://other.test"), ("acme", "https://of.a.test")])
def test_tokens_of_another_server_or_account_are_not_passed_off_as_these(path: Path, tenant: str, address: str) -> None:
    outputs_file.write(path, "main", OUTPUTS, MADE)
    outputs_file.write(path, tenant, {"Address": address}, None)
    assert tokens(path) == NONE


@pytest.mark.parametrize("before", [None, "no JSON", "[]"])
def test_where_no_tokens_are_known_it_says_none(path: Path, before: str | None) -> None:
    if before is not None:
        path.write_text(before)
    outputs_file.write(path, "main", OUTPUTS, None)
    assert tokens(path) == NONE


def test_a_write_that_fails_leaves_what_was_there(path: Path) -> None:
    outputs_file.write(path, "main", OUTPUTS, MADE)
    cannot: Any = {"Address": "https://of.a.test", "Bucket": object()}
    with pytest.raises(TypeError):
        outputs_file.write(path, "main", cannot, None)
    assert tokens(path) == HELD
    assert list(path.parent.iterdir()) == [path]
