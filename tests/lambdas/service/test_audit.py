import json
from datetime import date

import pytest

from daskscope_lambdas.service.audit import Audit, AuditReader, Operator
from daskscope_lambdas.service.compact import Compactor
from daskscope_lambdas.service.found import Asker
from daskscope_lambdas.service.gather import FAN_IN, Gatherer
from daskscope_lambdas.service.tokens import Principal
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters

ADA = Principal("acme", frozenset({"admin"}), "k" * 12, "laptop", None, "ada", "admin")
DAY_S = 86_400.0


@pytest.fixture
def audit(adapters: LocalAdapters) -> Audit:
    return Audit(adapters.objects, adapters.seals, adapters.clock)


@pytest.fixture
def reader(adapters: LocalAdapters) -> AuditReader:
    return AuditReader(Asker(adapters.lake_root, adapters.seals, adapters.deletions), adapters.clock)


def targets(reader: AuditReader, account: str = "acme") -> list[str]:
    return [found["target"] for found in reader.acts(account, 1000, 0).rows]


def test_an_act_is_told_as_it_was_done(audit: Audit, reader: AuditReader) -> None:
    audit.record(ADA, "user.role", "bob", {"role": "viewer"}, "10.0.0.7")
    (found,) = reader.acts("acme", 10, 0).rows
    assert found.pop("time").isoformat() == "2026-11-21T08:00:00+00:00"
    assert found == {
        "actor": "ada", "role": "admin", "key_id": "k" * 12, "address": "10.0.0.7", "action": "user.role",
        "target": "bob", "detail": {"role": "viewer"},
    }  # fmt: skip


def test_an_operator_is_told_apart_from_whoever_has_their_name(audit: Audit, reader: AuditReader) -> None:
    audit.record(Operator("acme", "ada"), "account.create", "acme")
    (found,) = reader.acts("acme", 10, 0).rows
    assert (found["actor"], found["role"], found["key_id"], found["address"]) == ("operator ada", None, None, None)
    assert found["detail"] == {}
    assert reader.acts("acme", 10, 0, actor="ada").rows == []


def test_a_token_is_taken_for_nobody_whatever_it_is_called(audit: Audit, reader: AuditReader) -> None:
    for name in ("ada", "operator root"):
        audit.record(Principal("acme", frozenset({"admin"}), "s" * 12, name), "token.create", "x")
    assert {each["actor"] for each in reader.acts("acme", 10, 0).rows} == {"token ada", "token operator root"}


def test_acts_outlive_the_gathering_and_the_sealing_of_their_day(
    audit: Audit, reader: AuditReader, adapters: LocalAdapters, clock: FakeClock
) -> None:
    for n in range(FAN_IN):
        clock.advance(1)
        audit.record(ADA, "token.create", str(n))
    audit.record(Operator("globex", "root"), "token.create", "theirs")
    expected = [str(n) for n in reversed(range(FAN_IN))]
    Gatherer(adapters.objects, adapters.seals, clock, adapters.lake_root).run()
    assert (targets(reader), targets(reader, "globex")) == (expected, ["theirs"])
    clock.advance(2 * DAY_S)
    sealed = Compactor(adapters.objects, adapters.seals, clock, adapters.lake_root).run()
    assert sealed[0] == date(2026, 11, 21)
    assert (targets(reader), targets(reader, "globex")) == (expected, ["theirs"])


def test_a_clock_that_was_set_back_loses_no_act(
    audit: Audit, reader: AuditReader, adapters: LocalAdapters, clock: FakeClock
) -> None:
    audit.record(ADA, "token.create", "first")
    clock.advance(2 * DAY_S)
    Compactor(adapters.objects, adapters.seals, clock, adapters.lake_root).run()
    clock.advance(-2 * DAY_S)
    audit.record(ADA, "token.revoke", "second")
    clock.advance(2 * DAY_S)
    assert sorted(targets(reader)) == ["first", "second"]


def test_what_is_told_of_an_act_may_hold_anything(audit: Audit, reader: AuditReader) -> None:
    hostile = {"name": "'; DROP TABLE audit; --\x1b[31m\u202e\ud7ff", "n": [None, 1.5]}
    audit.record(ADA, "token.create", "<b>", hostile)
    (found,) = reader.acts("acme", 10, 0).rows
    assert (found["target"], found["detail"]) == ("<b>", json.loads(json.dumps(hostile)))
