import pytest

from daskscope.errors import Conflict, PermissionDenied
from daskscope_lambdas.ports import Role, Scope, TokenRow
from daskscope_lambdas.service import giving
from daskscope_lambdas.service.tokens import OF_ROLES, Principal, mint
from daskscope_lambdas.testing import FakeClock
from tests.lambdas.service.memory_people import MemoryTokens

DAY_S = 86_400.0


@pytest.fixture
def tokens() -> MemoryTokens:
    return MemoryTokens()


def asking(row: TokenRow, role: Role | None = None) -> Principal:
    return Principal(row.account, row.scopes, row.key_id, row.name, row.expires_at, row.user, role, row.made_by)


def test_a_rotated_token_has_its_span_of_life_anew_where_it_is_one_s_own(
    tokens: MemoryTokens, clock: FakeClock
) -> None:
    _, own = mint(tokens, clock, "acme", ["read"], "login", clock.now() + 90 * DAY_S, user="ann")
    _, other = mint(tokens, clock, "acme", ["read"], "phone", clock.now() + 90 * DAY_S, user="ann")
    scopes = OF_ROLES["member"] - {"ingest"}
    _, login = mint(tokens, clock, "acme", scopes, "laptop", clock.now() + 60 * DAY_S, user="ann")
    _, site = mint(tokens, clock, "acme", ["read", "admin"], "ci", clock.now() + 90 * DAY_S)
    _, keeper = mint(tokens, clock, "acme", ["read", "admin"], "keeper", clock.now() + 70 * DAY_S)
    _, child = mint(tokens, clock, "acme", ["read"], "in it", clock.now() + 60 * DAY_S, user="ann", parent=site.key_id)
    clock.advance(50 * DAY_S)

    def ends(by: TokenRow, row: TokenRow, role: Role | None) -> float:
        _, made = giving.rotated(tokens, clock, asking(by, role), row, DAY_S, lambda _: None)
        assert tokens.find(row.key_id).expires_at == clock.now() + DAY_S
        return ((made.expires_at or 0.0) - clock.now()) / DAY_S

    assert ends(own, own, "member") == 90
    assert ends(login, other, "member") == 90
    assert ends(login, login, "member") == 60
    assert ends(child, child, "member") == 40, "with that which it came of"
    assert ends(keeper, site, None) == 20, "no longer than the one that asks, which gets to see it"


def test_one_that_is_on_its_way_out_is_not_rotated_again(tokens: MemoryTokens, clock: FakeClock) -> None:
    _, row = mint(tokens, clock, "acme", ["read"], "laptop", clock.now() + 90 * DAY_S, user="ann")
    by = asking(row, "member")
    _, heir = giving.rotated(tokens, clock, by, row, DAY_S, lambda _: None)
    assert heir.replaces == row.key_id
    with pytest.raises(Conflict, match=f"was rotated already, to {heir.key_id}: rotate that one, or make a new one"):
        giving.rotated(tokens, clock, by, tokens.find(row.key_id), DAY_S, lambda _: None)
    assert tokens.list("acme") == [tokens.find(row.key_id), heir]
    clock.advance(DAY_S - 1)
    _, next_one = giving.rotated(tokens, clock, asking(heir, "member"), heir, DAY_S, lambda _: None)
    assert next_one.expires_at == clock.now() + 90 * DAY_S


@pytest.mark.parametrize(
    ("role", "scopes", "user", "wanted", "may"),
    [
        ("member", {"read", "control", "report"}, "ann", {"ingest"}, True),
        ("member", {"read", "control", "report"}, None, {"ingest"}, False),
        ("member", {"read", "control"}, "ann", {"ingest"}, False),
        ("member", {"read", "control", "report"}, "ann", {"ingest", "admin"}, False),
        ("viewer", {"read"}, "ann", {"ingest"}, False),
        ("admin", {"read", "control", "report", "admin"}, "ann", {"ingest"}, True),
    ],
)
def test_who_has_a_login_gives_their_own_jobs_a_token_that_reports(
    role: Role, scopes: set[Scope], user: str | None, wanted: set[Scope], may: bool
) -> None:
    by = Principal("acme", frozenset(scopes), "k", "login on laptop", 1e9, "ann", role)
    if may:
        giving.check_given(by, wanted, user)
        assert giving.end_of(by, wanted, 2e9) == 2e9, "as long as jobs need it"
    else:
        with pytest.raises(PermissionDenied):
            giving.check_given(by, wanted, user)


def test_a_token_that_may_less_than_its_user_decides_about_itself_alone(tokens: MemoryTokens, clock: FakeClock) -> None:
    _, other = mint(tokens, clock, "acme", ["read"], "laptop", user="ann")
    cases: list[tuple[Role, set[Scope], bool]] = [
        ("viewer", {"read"}, True),
        ("member", {"read"}, False),
        ("member", {"read", "control"}, False),
        ("member", {"read", "control", "report"}, True),
        ("admin", {"read", "control", "report"}, False),
        ("admin", {"admin"}, True),
    ]
    for role, scopes, may in cases:
        _, row = mint(tokens, clock, "acme", scopes, "x", user="ann")
        by = asking(row, role)
        giving.check_decides(by, row)
        if may:
            giving.check_decides(by, other)
            continue
        for way in (giving.check_whole, lambda by: giving.check_decides(by, other)):
            with pytest.raises(PermissionDenied, match="about ann's other tokens"):
                way(by)
        with pytest.raises(PermissionDenied):
            giving.rotated(tokens, clock, by, other, 0.0, lambda _: None)


def test_what_an_admin_made_for_the_site_falls_but_for_what_is_harmless(tokens: MemoryTokens, clock: FakeClock) -> None:
    def site(name: str, scopes: set[Scope], made_by: str | None, expires_at: float | None = None) -> TokenRow:
        return mint(tokens, clock, "acme", scopes, name, expires_at, made_by=made_by)[1]

    falls = site("ci", {"read", "ingest"}, "mal")
    site("sends", {"ingest"}, "mal")
    site("ended", {"read"}, "mal", clock.now() + 1)
    site("other", {"admin"}, "ada")
    site("ops", {"admin"}, None)
    tokens.revoke(site("gone", {"read"}, "mal").key_id, clock.now())
    clock.advance(1)
    found = giving.fallen(tokens, clock, "acme", "mal")
    assert found == [falls]
    said = f" What they had made for the site is revoked: 'ci' ({falls.key_id})."
    assert giving.take_back(tokens, clock, found) == said
    assert tokens.find(falls.key_id).revoked_at == clock.now()
    assert giving.fallen(tokens, clock, "acme", "mal") == []
    assert giving.take_back(tokens, clock, []) == ""
