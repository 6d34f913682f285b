import base64
import hashlib
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from daskscope import wire
from daskscope.errors import BadMessage
from daskscope_lambdas.ports import ObjectStore, StoreError, Taken
from daskscope_lambdas.service import code as service
from daskscope_lambdas.service.code import CodeKeeper
from daskscope_lambdas.testing import race
from daskscope_lambdas.wiring import Adapters

SECRET = 'password = "correct-horse-battery-staple"  # ä €\ndf.groupby("customer").sum().compute()\n'


def code(text: str) -> wire.Code:
    return wire.Code(hash=hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32], text=text)


class CountedVault:
    """Passes on to a vault and counts what it sealed."""

    def __init__(self, adapters: Adapters) -> None:
        self._vault, self.sealed = adapters.vault, 0

    def seal(self, account: str, plain: Mapping[str, bytes]) -> dict[str, bytes]:
        self.sealed += len(plain)
        return self._vault.seal(account, plain)

    def open(self, account: str, sealed: Mapping[str, bytes]) -> dict[str, bytes]:
        return self._vault.open(account, sealed)

    def forget(self, account: str) -> None:
        self._vault.forget(account)


@pytest.fixture
def vault(adapters: Adapters) -> CountedVault:
    return CountedVault(adapters)


@pytest.fixture
def keeper(adapters: Adapters, vault: CountedVault) -> CodeKeeper:
    return CodeKeeper(adapters.objects, vault)


@pytest.mark.parametrize("text", ["", "x = 1\n", SECRET, "é" * 100_000])
def test_what_was_kept_is_read(keeper: CodeKeeper, text: str) -> None:
    keeper.keep("acme", [code(text)])
    assert keeper.read("acme", [code(text).hash]) == {code(text).hash: text}


def test_a_lone_surrogate_is_kept_as_the_plugin_sends_it(keeper: CodeKeeper) -> None:
    keeper.keep("acme", [code("x = '\ud800'")])
    assert keeper.read("acme", [code("x = '\ud800'").hash]) == {code("x = '?'").hash: "x = '?'"}


def test_none_is_fine(keeper: CodeKeeper) -> None:
    keeper.keep("acme", [])
    assert keeper.read("acme", []) == {}


def test_what_is_not_there_is_not_in_the_answer(keeper: CodeKeeper) -> None:
    keeper.keep("acme", [code("a")])
    keeper.keep("other", [code("b")])
    asked = [code("a").hash, code("b").hash, code("a").hash, "0" * 32, "", "../../keys/acme.key", "A" * 32, "é"]
    assert keeper.read("acme", asked) == {code("a").hash: "a"}


def test_the_same_text_in_two_accounts_is_kept_under_both_keys(keeper: CodeKeeper, adapters: Adapters) -> None:
    for account in ("acme", "other"):
        keeper.keep(account, [code("a")])
    assert len({adapters.objects.get(key) for key in adapters.objects.list("code/")}) == 2
    adapters.vault.forget("acme")
    assert keeper.read("acme", [code("a").hash]) == {}
    assert keeper.read("other", [code("a").hash]) == {code("a").hash: "a"}


@pytest.mark.parametrize("wrong", ["0" * 32, "", "../x", code("good").hash.upper(), code("good").hash[:31]])
def test_a_hash_that_is_not_the_texts_keeps_none_of_them(
    keeper: CodeKeeper, adapters: Adapters, vault: CountedVault, wrong: str
) -> None:
    with pytest.raises(BadMessage, match="is not the SHA-256") as caught:
        keeper.keep("acme", [code("fine"), wire.Code(hash=wrong, text="good")])
    assert caught.value.place == "$.codes[1].hash"
    assert list(adapters.objects.list("")) == []
    assert vault.sealed == 0


def test_repeats_cost_nothing(keeper: CodeKeeper, vault: CountedVault) -> None:
    for _ in range(5):
        keeper.keep("acme", [code("a"), code("b"), code("a")])
    assert vault.sealed == 2
    keeper.keep("other", [code("a")])
    assert vault.sealed == 3


def test_what_another_process_kept_is_fine(keeper: CodeKeeper, adapters: Adapters, vault: CountedVault) -> None:
    keeper.keep("acme", [code("a")])
    (key,) = adapters.objects.list("code/")
    before = adapters.objects.get(key)
    CodeKeeper(adapters.objects, vault).keep("acme", [code("a"), code("b")])
    assert adapters.objects.get(key) == before
    assert keeper.read("acme", [code("a").hash, code("b").hash]) == {code("a").hash: "a", code("b").hash: "b"}


def test_the_memory_is_bounded_and_drops_the_least_used(
    keeper: CodeKeeper, vault: CountedVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_REMEMBERED", 2)
    for text in ("a", "b", "a", "c"):
        keeper.keep("acme", [code(text)])
    assert vault.sealed == 3
    keeper.keep("acme", [code("a")])
    assert vault.sealed == 3
    keeper.keep("acme", [code("b")])
    assert vault.sealed == 4


def test_what_could_not_be_kept_is_tried_again(
    keeper: CodeKeeper, adapters: Adapters, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(key: str, body: bytes) -> None:
        raise StoreError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(type(adapters.objects), "put_new", lambda _, key, body: full(key, body))
        with pytest.raises(StoreError):
            keeper.keep("acme", [code("a")])
    keeper.keep("acme", [code("a")])
    assert keeper.read("acme", [code("a").hash]) == {code("a").hash: "a"}


def test_many_threads_keep_the_same(keeper: CodeKeeper) -> None:
    codes = [code(str(n)) for n in range(8)]
    assert race(32, lambda n: keeper.keep("acme", codes[n % 8 :] + codes[: n % 8])) == [None] * 32
    assert keeper.read("acme", [each.hash for each in codes]) == {each.hash: each.text for each in codes}


class AllAtOnce:
    """An ObjectStore that answers nobody before `n` ask."""

    def __init__(self, objects: ObjectStore, n: int) -> None:
        self._objects = objects
        self._line = threading.Barrier(n, timeout=30)

    def put_new(self, key: str, body: bytes) -> None:
        self._line.wait()
        self._objects.put_new(key, body)

    def get(self, key: str) -> bytes:
        self._line.wait()
        return self._objects.get(key)

    def list(self, prefix: str) -> Iterator[str]:
        return self._objects.list(prefix)

    def delete(self, key: str) -> None:
        self._objects.delete(key)


def test_many_are_kept_and_read_at_once(adapters: Adapters) -> None:
    keeper = CodeKeeper(AllAtOnce(adapters.objects, 16), adapters.vault)
    codes = [code(str(n)) for n in range(48)]
    keeper.keep("acme", codes)
    assert len(list(adapters.objects.list("code/"))) == 48, "all are durable when keep returns"
    found = keeper.read("acme", [each.hash for each in codes])
    assert list(found.items()) == [(each.hash, each.text) for each in codes]


def test_of_many_one_that_fails_is_told_and_tried_again(
    keeper: CodeKeeper, adapters: Adapters, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = [code(str(n)) for n in range(48)]
    put_new = type(adapters.objects).put_new

    def flaky(store: Any, key: str, body: bytes) -> None:
        if key.endswith(codes[7].hash):
            raise StoreError("No space left on device")
        put_new(store, key, body)

    with monkeypatch.context() as patch:
        patch.setattr(type(adapters.objects), "put_new", flaky)
        with pytest.raises(StoreError, match="No space left"):
            keeper.keep("acme", codes)
    keeper.keep("acme", codes)
    assert keeper.read("acme", [each.hash for each in codes]) == {each.hash: each.text for each in codes}


def test_a_changed_ciphertext_is_an_error_and_not_a_text(keeper: CodeKeeper, adapters: Adapters) -> None:
    keeper.keep("acme", [code("a"), code("b")])
    first, second = adapters.objects.list("code/")
    body = adapters.objects.get(first)
    adapters.objects.delete(second)
    adapters.objects.put_new(second, body)  # one snippet in the other's place
    with pytest.raises(StoreError):
        keeper.read("acme", [code("a").hash, code("b").hash])
    with pytest.raises(Taken):
        adapters.objects.put_new(first, b"")


def test_forgotten_code_is_gone_and_may_come_again(keeper: CodeKeeper, adapters: Adapters) -> None:
    for account in ("acme", "acme-2"):
        keeper.keep(account, [code("a"), code("b")])
    keeper.forget("acme")
    keeper.forget("acme")
    assert keeper.read("acme", [code("a").hash]) == {}
    assert list(adapters.objects.list("code/account=acme/")) == []
    keeper.keep("acme", [code("a")])
    assert keeper.read("acme", [code("a").hash, code("b").hash]) == {code("a").hash: "a"}
    assert len(keeper.read("acme-2", [code("a").hash, code("b").hash])) == 2


def test_no_file_holds_the_text_in_the_clear(keeper: CodeKeeper, adapters: Adapters, tmp_path: Path) -> None:
    keeper.keep("acme", [code(SECRET)])
    raw = [path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert len(raw) >= 3  # the object, the key, the registry
    plain = SECRET.encode()
    parts = [plain[n : n + 16] for n in range(0, len(plain) - 16, 4)]
    forms = [*parts, *(part.hex().encode() for part in parts), SECRET[:12].encode("utf-16-le")]
    forms += [base64.b64encode(plain[shift:])[:20] for shift in range(3)]
    assert [form for form in forms if any(form in content for content in raw)] == []
    adapters.objects.put_new("control", plain)
    assert plain[:16] in b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
