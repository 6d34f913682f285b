from collections.abc import Callable

import pytest

from daskscope_lambdas.ports import Missing, StoreError, Vault
from daskscope_lambdas.testing import race, seal, unseal
from daskscope_lambdas.wiring import Adapters


@pytest.mark.parametrize("plain", [b"", b"x", bytes(range(256)) * 1000], ids=["empty", "one", "binary"])
def test_what_was_sealed_is_opened(vault: Vault, plain: bytes) -> None:
    assert unseal(vault, "acme", seal(vault, "acme", plain, "context"), "context") == plain


def test_many_are_sealed_and_opened_together(vault: Vault) -> None:
    plain = {f"context {n}": b"%d" % n for n in range(100)}
    sealed = vault.seal("acme", plain)
    assert vault.open("acme", sealed) == plain
    assert unseal(vault, "acme", sealed["context 7"], "context 7") == b"7"
    assert vault.seal("acme", {}) == {}
    with pytest.raises(StoreError):
        vault.open("acme", sealed | {"context 7": sealed["context 8"]})


def test_sealing_twice_gives_different_bytes_and_shows_nothing(vault: Vault) -> None:
    plain = b"the user's code, long enough"
    first, second = seal(vault, "acme", plain, "c"), seal(vault, "acme", plain, "c")
    assert first != second
    assert plain[:8] not in first + second
    assert unseal(vault, "acme", first, "c") == unseal(vault, "acme", second, "c") == plain


@pytest.mark.parametrize(("account", "context"), [("acme", "other"), ("other", "c"), ("acme", ""), ("acme", "c ")])
def test_another_account_or_context_does_not_open_it(vault: Vault, account: str, context: str) -> None:
    sealed = seal(vault, "acme", b"secret", "c")
    seal(vault, "other", b"makes its key", "c")
    with pytest.raises(StoreError) as caught:
        unseal(vault, account, sealed, context)
    assert caught.value.__cause__ is not None


def test_every_changed_byte_is_noticed(vault: Vault) -> None:
    sealed = seal(vault, "acme", b"secret", "c")
    for n in range(len(sealed)):
        with pytest.raises(StoreError):
            unseal(vault, "acme", sealed[:n] + bytes([sealed[n] ^ 1]) + sealed[n + 1 :], "c")


def test_every_cut_is_noticed(vault: Vault) -> None:
    sealed = seal(vault, "acme", b"secret", "c")
    for n in range(len(sealed)):
        with pytest.raises(StoreError):
            unseal(vault, "acme", sealed[:n], "c")
    with pytest.raises(StoreError):
        unseal(vault, "acme", sealed + b"\0", "c")


def test_without_a_key_nothing_opens_and_none_is_made(vault: Vault) -> None:
    sealed = seal(vault, "acme", b"secret", "c")
    for _ in range(2):
        with pytest.raises(Missing):
            unseal(vault, "other", sealed, "c")


def test_forgotten_is_gone_for_good_in_every_process(connect_again: Callable[[], Adapters], vault: Vault) -> None:
    elsewhere = connect_again().vault
    sealed, others = seal(elsewhere, "acme", b"secret", "c"), seal(vault, "other", b"kept", "c")
    assert unseal(vault, "acme", sealed, "c") == b"secret"
    vault.forget("acme")
    vault.forget("acme")
    vault.forget("never-there")
    for each in (vault, elsewhere):
        with pytest.raises(Missing):
            unseal(each, "acme", sealed, "c")
    again = seal(elsewhere, "acme", b"new", "c")
    assert unseal(vault, "acme", again, "c") == b"new"
    with pytest.raises(StoreError):
        unseal(vault, "acme", sealed, "c")
    assert unseal(vault, "other", others, "c") == b"kept"


def test_racing_first_callers_share_one_key(connect_again: Callable[[], Adapters], vault: Vault) -> None:
    vaults = [connect_again().vault for _ in range(32)]
    outcomes = race(32, lambda n: seal(vaults[n], "acme", b"%d" % n, "c"))
    sealed = [outcome for outcome in outcomes if isinstance(outcome, bytes)]
    assert [unseal(vault, "acme", each, "c") for each in sealed] == [b"%d" % n for n in range(32)]
