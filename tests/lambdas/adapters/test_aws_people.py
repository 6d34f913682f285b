"""People, tokens, tickets, wishes and reports in DynamoDB: others at work, an index that is late, what goes by itself,
and items of earlier releases.
"""

from dataclasses import replace
from typing import Any

import pytest

from daskscope_lambdas.adapters import aws
from daskscope_lambdas.adapters.aws import again
from daskscope_lambdas.env import AwsEnv
from daskscope_lambdas.ports import Membership, ReportDraft, StoreError, Ticket, TokenRow
from tests.lambdas.adapters.aws_rig import Answers, refusal

BUSY = refusal("TransactionCanceledException")
TRIES = 1 + len(again.PAUSES_S)
ANN = Membership(account="acme", user="ann", role="member", added_at=100.5, added_by="bob")
TOKEN = TokenRow(key_id="k", secret_sha256="s", account="acme", scopes=frozenset({"read"}), name="n", created_at=1.0)
DRAFT = ReportDraft(
    account="acme", link="x", filename="a.html", title=None, private=False, user=None, user_claimed=False, key_id="k",
    size_bytes=1, created_at=1.0,
)  # fmt: skip


def late(*keys: str) -> dict[str, Any]:
    """An answer of the index in which what is gone still stands."""
    items = [{"key": {"S": key}, "listed_at": {"S": key.rpartition("/")[2]}} for key in keys]
    return {"Items": items, "ResponseMetadata": {"HTTPStatusCode": 200}}


def forget_at(clients: aws.Clients, env: AwsEnv, key: str) -> str | None:
    item = clients.dynamodb().get_item(TableName=env.table, Key={"key": {"S": key}}).get("Item", {})
    return item.get("forget_at", {}).get("N")


def test_a_membership_that_others_change_is_written_after_them(clients: aws.Clients, aws_env: AwsEnv) -> None:
    users = aws.DynamoUsers(clients.dynamodb, aws_env.table)
    answers = Answers(clients.dynamodb(), TransactWriteItems=[BUSY, BUSY])
    users.put(ANN)
    assert answers.calls["TransactWriteItems"] == 3
    assert list(users.of("ann")) == [ANN]
    Answers(clients.dynamodb(), TransactWriteItems=[BUSY] * 99)
    with pytest.raises(StoreError):
        users.remove("acme", "ann")
    assert answers.calls["TransactWriteItems"] == 3 + TRIES
    assert users.find("acme", "ann") == ANN


def test_an_index_that_is_late_brings_nobody_back(clients: aws.Clients, aws_env: AwsEnv) -> None:
    users = aws.DynamoUsers(clients.dynamodb, aws_env.table)
    users.put(ANN)
    Answers(clients.dynamodb(), Query=[late("member/acme/ann", "member/acme/gone"), late("joined/ann/gone")])
    assert list(users.list("acme")) == [ANN]
    assert list(users.of("ann")) == []


def test_a_page_is_full_although_the_index_names_what_is_gone(clients: aws.Clients, aws_env: AwsEnv) -> None:
    reports = aws.DynamoReports(clients.dynamodb, aws_env.table)
    for n in range(4):
        reports.add(replace(DRAFT, link=str(n)))
    named = [f"report/acme/{n}" for n in (9, 8, 4, 3, 2, 1)]
    Answers(clients.dynamodb(), Query=[late(*named)])
    assert [row.id for row in reports.page("acme", 2)] == [4, 3]
    Answers(clients.dynamodb(), Query=[late(*named)])
    assert [row.id for row in reports.page("acme", 3)] == [4, 3, 2]


def test_a_page_asks_for_no_more_than_it_shows(clients: aws.Clients, aws_env: AwsEnv) -> None:
    reports = aws.DynamoReports(clients.dynamodb, aws_env.table)
    for n in range(5):
        reports.add(replace(DRAFT, link=str(n)))
    answers = Answers(clients.dynamodb())
    assert [row.id for row in reports.page("acme", 2, 4)] == [3, 2]
    assert answers.calls == {"Query": 1, "BatchGetItem": 1}


@pytest.mark.parametrize("expires_at", [None, 2e9 + 0.5])
def test_an_expired_token_may_go_a_month_later(clients: aws.Clients, aws_env: AwsEnv, expires_at: float | None) -> None:
    tokens = aws.DynamoTokens(clients.dynamodb, aws_env.table)
    tokens.add(replace(TOKEN, expires_at=expires_at))
    assert forget_at(clients, aws_env, "token/k") == (None if expires_at is None else str(2_000_000_001 + 30 * 86_400))
    tokens.expire("k", 1e9)
    assert forget_at(clients, aws_env, "token/k") == str(1_000_000_000 + 30 * 86_400)


def test_a_ticket_goes_by_itself_and_not_before_its_time(clients: aws.Clients, aws_env: AwsEnv) -> None:
    aws.DynamoTickets(clients.dynamodb, aws_env.table).add(
        Ticket(key="t", kind="sign-in", told={}, expires_at=2e9 + 0.5)
    )
    assert forget_at(clients, aws_env, "ticket/t") == "2000000001"


def test_a_token_of_an_earlier_release_is_read(clients: aws.Clients, aws_env: AwsEnv) -> None:
    item: Any = {
        "key": {"S": "token/k"}, "key_id": {"S": "k"}, "secret_sha256": {"S": "s"}, "account": {"S": "acme"},
        "scopes": {"S": "read"}, "name": {"S": "n"}, "created_at": {"N": "1.0"}, "listed_in": {"S": "tokens/acme"},
        "listed_at": {"S": "bff0000000000000/k"},
    }  # fmt: skip
    clients.dynamodb().put_item(TableName=aws_env.table, Item=item)
    tokens = aws.DynamoTokens(clients.dynamodb, aws_env.table)
    assert tokens.find("k") == TOKEN
    assert list(tokens.list("acme")) == [TOKEN]


def test_wishes_of_an_earlier_release_are_read_and_stay(clients: aws.Clients, aws_env: AwsEnv) -> None:
    item: Any = {
        "key": {"S": "policy/acme"}, "account": {"S": "acme"}, "retention": {"S": '{"logs": 30}'},
        "listed_in": {"S": "policies"}, "listed_at": {"S": "acme"},
    }  # fmt: skip
    clients.dynamodb().put_item(TableName=aws_env.table, Item=item)
    policies = aws.DynamoPolicies(clients.dynamodb, aws_env.table)
    policies.set_wish("acme", "idle", {"timeout_s": 60})
    policies.set_wish("acme", "idle", {})
    assert policies.wish("acme", "retention") == {"logs": 30}
    assert list(policies.accounts()) == ["acme"]
