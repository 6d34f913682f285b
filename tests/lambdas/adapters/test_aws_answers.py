"""Answers of AWS that are no failure yet: others at work, not all at once, seen a moment late."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from botocore.exceptions import ClientError

from daskscope_lambdas.adapters import aws
from daskscope_lambdas.adapters.aws import again
from daskscope_lambdas.env import AwsEnv
from daskscope_lambdas.ports import Beat, Conflict, Missing, StoreError
from daskscope_lambdas.testing import seal, unseal
from tests.lambdas.adapters.aws_rig import Answers, refusal

NOT_YET = refusal("ParameterNotFound")
BUSY = refusal("TransactionConflictException")
TRIES = 1 + len(again.PAUSES_S)
BEAT = Beat(
    boot="b1", seq=0, received_at=110.0, made_at=109.5, next_s=10.0, phase="running", reason=None, identity=None,
    totals={}, lost={},
)  # fmt: skip


def test_pauses_grow_and_end_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(again.time, "sleep", slept.append)
    assert list(again.tries()) == list(range(TRIES))
    assert len(slept) == len(again.PAUSES_S)
    assert list(again.PAUSES_S) == sorted(again.PAUSES_S)
    assert all(pause / 2 <= told <= pause for told, pause in zip(slept, again.PAUSES_S, strict=True))
    assert sum(again.PAUSES_S) < 1


def test_a_put_among_others_comes_again(clients: aws.Clients, aws_env: AwsEnv) -> None:
    answers = Answers(clients.s3(), PutObject=[refusal("ConditionalRequestConflict")] * 3)
    objects = aws.S3Objects(clients.s3, aws_env.bucket)
    objects.put_new("a", b"x")
    assert objects.get("a") == b"x"
    assert answers.calls["PutObject"] == 4


def test_a_put_that_never_gets_its_turn_is_a_store_error(clients: aws.Clients, aws_env: AwsEnv) -> None:
    answers = Answers(clients.s3(), PutObject=[refusal("ConditionalRequestConflict")] * 99)
    with pytest.raises(StoreError) as caught:
        aws.S3Objects(clients.s3, aws_env.bucket).put_new("a", b"x")
    assert isinstance(caught.value.__cause__, ClientError)
    assert answers.calls["PutObject"] == TRIES


def test_items_left_out_are_asked_for_again(clients: aws.Clients, aws_env: AwsEnv) -> None:
    registry = aws.DynamoClusters(clients.dynamodb, aws_env.table)
    for n in range(3):
        registry.enrol("acme", f"u{n}", float(n), 1.0)
    keys = [{"key": {"S": f"cluster/u{n}"}} for n in range(3)]
    none: dict[str, Any] = {
        "Responses": {},
        "UnprocessedKeys": {aws_env.table: {"Keys": keys, "ConsistentRead": True}},
        "ResponseMetadata": {"HTTPStatusCode": 200},
    }
    answers = Answers(clients.dynamodb(), BatchGetItem=[none, none])
    assert sorted(row.uuid for row in registry.living()) == ["u0", "u1", "u2"]
    assert answers.calls["BatchGetItem"] == 3
    Answers(clients.dynamodb(), BatchGetItem=[none] * 99)
    with pytest.raises(StoreError, match="left out"):
        registry.page("acme", None, 10, None)


def test_an_index_that_is_late_brings_no_closed_cluster_back(clients: aws.Clients, aws_env: AwsEnv) -> None:
    registry = aws.DynamoClusters(clients.dynamodb, aws_env.table)
    for n in range(2):
        registry.enrol("acme", f"u{n}", float(n), 1.0)
    registry.beat("acme", "u1", replace(BEAT, phase="closed"))
    late: dict[str, Any] = {
        "Items": [{"key": {"S": f"cluster/u{n}"}} for n in range(2)],
        "ResponseMetadata": {"HTTPStatusCode": 200},
    }
    Answers(clients.dynamodb(), Query=[late])
    assert [row.uuid for row in registry.living()] == ["u0"]


def test_items_are_read_as_they_are_now(clients: aws.Clients, aws_env: AwsEnv) -> None:
    """The emulator always answers so; DynamoDB only when it is asked to."""
    asked: list[bool | None] = []

    def note(params: dict[str, Any], **_: Any) -> None:
        asked.extend(each.get("ConsistentRead") for each in params.get("RequestItems", {"": params}).values())

    for operation in ("GetItem", "BatchGetItem"):
        clients.dynamodb().meta.events.register(f"provide-client-params.dynamodb.{operation}", note)
    registry = aws.DynamoClusters(clients.dynamodb, aws_env.table)
    registry.get("acme", registry.enrol("acme", "u1", 90.0, 100.0).id)
    assert len([*registry.living(), *registry.page("acme", None, 10, None).rows]) == 2
    with pytest.raises(Missing):
        aws.DynamoTokens(clients.dynamodb, aws_env.table).find("k")
    assert aws.DynamoSeals(clients.dynamodb, aws_env.table).boundary() is None
    assert asked == [True] * 7


def test_who_loses_the_race_for_a_uuid_reads_the_winners_row(clients: aws.Clients, aws_env: AwsEnv) -> None:
    registry = aws.DynamoClusters(clients.dynamodb, aws_env.table)
    winner = registry.enrol("acme", "u1", 90.0, 100.0)
    unseen = {"ResponseMetadata": {"HTTPStatusCode": 200}}  # as it was before the winner came
    answers = Answers(clients.dynamodb(), GetItem=[unseen])
    assert registry.enrol("acme", "u1", 91.0, 101.0) == winner
    assert answers.calls["TransactWriteItems"] == 1
    assert registry.enrol("acme", "u2", 92.0, 102.0).id == 3  # 2 went to the loser


def test_whose_rival_fails_enrols_after_all(clients: aws.Clients, aws_env: AwsEnv) -> None:
    answers = Answers(clients.dynamodb(), TransactWriteItems=[refusal("TransactionCanceledException")] * 2)
    registry = aws.DynamoClusters(clients.dynamodb, aws_env.table)
    assert registry.enrol("acme", "u1", 90.0, 100.0) == registry.get("acme", 1)
    assert answers.calls["TransactWriteItems"] == 3
    Answers(clients.dynamodb(), TransactWriteItems=[refusal("TransactionCanceledException")] * 99)
    with pytest.raises(StoreError, match="u2"):
        registry.enrol("acme", "u2", 90.0, 100.0)


def test_a_beat_among_enrolments_comes_again(clients: aws.Clients, aws_env: AwsEnv) -> None:
    registry = aws.DynamoClusters(clients.dynamodb, aws_env.table)
    registry.enrol("acme", "u1", 90.0, 100.0)
    answers = Answers(clients.dynamodb(), UpdateItem=[BUSY, BUSY])
    assert registry.beat("acme", "u1", BEAT).newer
    assert answers.calls["UpdateItem"] == 3


def test_a_beat_is_one_request_unless_time_went_back(clients: aws.Clients, aws_env: AwsEnv) -> None:
    registry = aws.DynamoClusters(clients.dynamodb, aws_env.table)
    registry.enrol("acme", "u1", 90.0, 100.0)
    answers = Answers(clients.dynamodb())
    assert registry.beat("acme", "u1", BEAT).newer
    assert not registry.beat("acme", "u1", BEAT).newer
    assert answers.calls == {"UpdateItem": 2}


def test_what_lives_elsewhere_is_read_once(clients: aws.Clients, aws_env: AwsEnv) -> None:
    registry = aws.DynamoClusters(clients.dynamodb, aws_env.table)
    for n in range(110):
        registry.enrol("other", f"o{n}", 90.0, 100.0)
    registry.enrol("acme", "u1", 90.0, 100.0)
    answers = Answers(clients.dynamodb())

    def changed(account: str) -> tuple[int, int]:
        answers.calls.clear()
        return len(list(registry.changed(account, 0.0, 1, ("u1",)))), answers.calls["BatchGetItem"]

    assert changed("acme") == (1, 3), "111 that live, and the number 1"
    assert changed("acme") == (1, 2)
    registry.enrol("other", "new", 90.0, 100.0)
    registry.enrol("acme", "u2", 90.0, 100.0)
    registry.retire(registry.find("other", "o7"))
    assert changed("acme") == (2, 2)
    assert changed("other")[0] == 111
    assert changed("acme") == (2, 2)


def test_a_key_just_made_is_used_without_reading_it_back(clients: aws.Clients, aws_env: AwsEnv) -> None:
    answers = Answers(clients.ssm())
    vault = aws.SsmVault(clients.ssm, aws_env.keys)
    sealed = seal(vault, "acme", b"x", "c")
    assert answers.calls == {"GetParameter": 1, "PutParameter": 1}
    assert unseal(vault, "acme", sealed, "c") == b"x"


def test_one_request_seals_or_opens_however_many(clients: aws.Clients, aws_env: AwsEnv) -> None:
    vault = aws.SsmVault(clients.ssm, aws_env.keys)
    seal(vault, "acme", b"makes the key", "c")
    plain = {f"context {n}": b"%d" % n for n in range(100)}
    answers = Answers(clients.ssm())
    assert vault.open("acme", vault.seal("acme", plain)) == plain
    assert answers.calls == {"GetParameter": 2}


def test_a_key_that_is_not_to_be_seen_yet_is_looked_for_again(clients: aws.Clients, aws_env: AwsEnv) -> None:
    vault = aws.SsmVault(clients.ssm, aws_env.keys)
    sealed = seal(vault, "acme", b"x", "c")
    answers = Answers(clients.ssm(), GetParameter=[NOT_YET] * 3)
    assert unseal(vault, "acme", sealed, "c") == b"x"
    assert answers.calls == {"GetParameter": 4}


def test_who_cannot_see_the_winners_key_yet_waits_for_it(clients: aws.Clients, aws_env: AwsEnv) -> None:
    vault = aws.SsmVault(clients.ssm, aws_env.keys)
    seal(vault, "acme", b"winner", "c")
    answers = Answers(clients.ssm(), GetParameter=[NOT_YET] * 3)
    sealed = seal(vault, "acme", b"loser", "c")
    assert answers.calls == {"GetParameter": 4, "PutParameter": 1}
    assert unseal(vault, "acme", sealed, "c") == b"loser"
    Answers(clients.ssm(), GetParameter=[NOT_YET] * 99)
    with pytest.raises(Missing):
        seal(vault, "acme", b"never", "c")


def test_a_damaged_key_is_named_and_not_replaced(clients: aws.Clients, aws_env: AwsEnv) -> None:
    vault = aws.SsmVault(clients.ssm, aws_env.keys)
    sealed, name = seal(vault, "acme", b"x", "c"), f"{aws_env.keys}/acme"
    for value in ("no base64!", "c2hvcnQ="):
        clients.ssm().put_parameter(Name=name, Value=value, Type="SecureString", Overwrite=True)
        for call in (lambda: seal(vault, "acme", b"y", "c"), lambda: unseal(vault, "acme", sealed, "c")):
            with pytest.raises(StoreError, match="key of account acme is damaged") as caught:
                call()
            assert value not in str(caught.value)
        assert clients.ssm().get_parameter(Name=name, WithDecryption=True)["Parameter"].get("Value") == value


@pytest.mark.parametrize("account", ["..", "../x", "/x", "a//b", "", "a\0"])
def test_no_account_reaches_out_of_the_keys(clients: aws.Clients, aws_env: AwsEnv, account: str) -> None:
    vault = aws.SsmVault(clients.ssm, aws_env.keys)
    for call in (lambda: seal(vault, account, b"x", "c"), lambda: vault.forget(account)):
        with pytest.raises(ValueError, match="no object key"):
            call()


@pytest.mark.parametrize(("kms_key", "used"), [("", "alias/aws/ssm"), ("alias/ours", "alias/ours")])
def test_keys_are_secure_strings_under_the_kms_key(
    clients: aws.Clients, aws_env: AwsEnv, kms_key: str, used: str
) -> None:
    seal(aws.SsmVault(clients.ssm, aws_env.keys, kms_key), "acme", b"x", "c")
    filters: Any = [{"Key": "Name", "Values": [f"{aws_env.keys}/acme"]}]
    (told,) = clients.ssm().describe_parameters(ParameterFilters=filters)["Parameters"]
    assert (told.get("Type"), told.get("KeyId")) == ("SecureString", used)


def test_seals_tell_what_they_met(clients: aws.Clients, aws_env: AwsEnv) -> None:
    seals = aws.DynamoSeals(clients.dynamodb, aws_env.table)
    seals.advance(None, date(2026, 11, 20))
    with pytest.raises(Conflict, match="at 2026-11-20, not at None"):
        seals.advance(None, date(2026, 11, 21))
