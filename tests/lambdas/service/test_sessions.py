import pytest

from daskscope_lambdas.service import sessions
from daskscope_lambdas.service.gate import Gate
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters


@pytest.mark.parametrize(("token_s", "session_s"), [(None, 30 * 86_400), (600, 600), (400 * 86_400, 30 * 86_400)])
def test_a_session_outlives_neither_a_month_nor_its_token(
    adapters: LocalAdapters, clock: FakeClock, token_s: float | None, session_s: float
) -> None:
    ends = None if token_s is None else clock.at + token_s
    bearer, token = mint(adapters.tokens, clock, "acme", ["read", "ingest"], "x", ends)
    principal = Gate(adapters.tokens, adapters.users, clock).principal(f"Bearer {bearer}")
    text, row = sessions.by_token(adapters.tokens, clock, principal)
    assert (row.kind, row.parent, row.expires_at) == ("session", token.key_id, clock.at + session_s)
    assert row.scopes == {"read", "ingest"}
    assert text != bearer


def test_to_close_one_ends_no_token(adapters: LocalAdapters, clock: FakeClock) -> None:
    _, token = mint(adapters.tokens, clock, "acme", ["read"], "x")
    _, session = sessions.of_person(adapters.tokens, clock, "ann", "acme")
    for key_id in (token.key_id, session.key_id, "nobody"):
        sessions.close(adapters.tokens, clock, key_id)
    assert adapters.tokens.find(token.key_id).revoked_at is None
    assert adapters.tokens.find(session.key_id).revoked_at == clock.at
