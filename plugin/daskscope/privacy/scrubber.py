"""Masks secrets in a text: what the settings ask for, and always the cluster's own token."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from daskscope import wire
from daskscope.privacy import endings, keys, shapes, values
from daskscope.privacy.assignments import Assignments
from daskscope.privacy.codes import Codes
from daskscope.privacy.names import Names, Sign
from daskscope.privacy.own import OwnPatterns
from daskscope.privacy.tokens import Tokens
from daskscope.privacy.walk import Walk
from daskscope.privacy.words import Words
from daskscope.settings import TOKENS, Settings

MAX_PASSES = 4
MAX_CLEAN, MAX_CLEAN_LENGTH = 8_192, 256
"""So many short texts are remembered as having no secret: names and addresses come in every message."""

_ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_TRIGGERS = tuple({form.trigger for form in (*keys.FORMS, *shapes.FORMS)} - shapes.NEEDLESS) + shapes.OTHERS
_NUMBERS = re.compile(r"(?<!\d)[3-6]\d{3}(?:\d{8,}|-\d{4}-\d{4}|(?!\S))")


class Scrubber:
    """Made once per watch; used by one thread, the sender's."""

    def __init__(self, settings: Settings) -> None:
        self._tokens = Tokens(token for token in (getattr(settings, name) for name in TOKENS) if token)
        self._scrubs = settings.scrub
        self._names = Names(settings.scrub_words)
        self._assignments = Assignments(self._names)
        self._own = OwnPatterns(settings.scrub_patterns if settings.scrub else ())
        self._words = Words(self._is_suspect)
        self._clean: set[str | None] = {None, ""}
        self._codes = Codes(self.text)
        self._walk = Walk(self)

    def message(self, message: wire.Message) -> None:
        """Mask secrets in all of its texts; what hangs on the message is replaced, never changed: readers keep it."""
        self._own.refresh()
        self._codes.settle(message)
        self._walk.message(message)

    def text(self, text: str) -> str:
        """`text` with secrets masked; it has as many lines as before. Never raises, whatever the text."""
        if text in self._clean:
            return text
        body, mark, is_cut = endings.parted(text)
        if is_cut or self.may_hold(text):
            found = self._masked(self._tokens.mask(body, is_cut=is_cut), is_cut=is_cut, is_marked=bool(mark)) + mark
        else:
            found = text
        if found == text and len(text) <= MAX_CLEAN_LENGTH:
            self._remember(text)
        return found

    def is_clean(self, texts: Iterable[str | None]) -> bool:
        """Whether all of these are known to be without secrets."""
        return self._clean.issuperset(texts)

    def hides(self, name: str, value: object) -> bool:
        """Whether what stands under this key of a payload is masked, whatever it is: but no count under a name that
        means other things, too."""
        sign = self._names.sign(name) if self._scrubs else None
        if sign is None or (sign is Sign.LINK and name.lower() == "key"):
            return False
        return sign in (Sign.SECRET, Sign.OWN) or not isinstance(value, (int, float))

    def hides_tag(self, name: str, value: str) -> bool:
        """The same of a tag, which people write to be read: what may be a word stays."""
        return self.hides(name, value) and (
            self._names.sign(name) in (Sign.SECRET, Sign.OWN) or values.is_strong(value)
        )

    def hides_item(self, name: str, value: str) -> bool:
        """Whether an item of a list under this key is masked: `passwords`; a list of tokens may be a language's."""
        sign = self._names.sign_of_items(name) if self._scrubs and self._names.sign(name) is None else None
        return sign is Sign.OWN or (
            sign is Sign.SECRET and (not name.lower().endswith("tokens") or values.is_strong(value))
        )

    def hides_number(self, name: str, number: float) -> bool:
        """Whether a number under this key is masked: of a card, or what a pattern of the user's finds."""
        text = f"{name}: {number}"
        return self.text(text) != text

    def may_hold(self, text: str) -> bool:
        """Whether there could be a secret in `text`, or half of one: cheap."""
        return bool(self._own) or len(text) >= endings.CUT_FROM or not self._words.are_clean(text)

    def _is_suspect(self, words: str) -> bool:
        if self._tokens.may_be_in(words):
            return True
        if not self._scrubs:
            return False
        lowered = words.lower()
        return (
            any(map(lowered.__contains__, self._names.cores))
            or any(map(words.__contains__, _TRIGGERS))
            or any(map(lowered.__contains__, shapes.LOWERED))
            or _NUMBERS.search(words) is not None
        )

    def _remember(self, text: str) -> None:
        if len(self._clean) >= MAX_CLEAN:
            self._clean.clear()
            self._clean.update((None, ""))
        self._clean.add(text)

    def _masked(self, text: str, *, is_cut: bool, is_marked: bool) -> str:
        if not self._scrubs:
            return text
        if is_cut:
            text = endings.masked(text, self._names, is_marked=is_marked)
        for _ in range(MAX_PASSES):  # what one pass masks may show the next where a value ends
            before, text = text, values.replaced(text, self._spans(text))
            if before == text:
                break
        return self._own.mask(text)

    def _spans(self, text: str) -> Iterator[values.Span]:
        lowered = text.lower()
        if len(lowered) != len(text):  # a letter that is two in lower case
            lowered = text.translate(_ASCII_LOWER)
        found = [span for form in keys.FORMS if form.trigger in text for span in form.spans(text)]
        for start, end in (*found, *shapes.spans(text, lowered), *self._assignments.spans(text, lowered)):
            if start < end and text[start:end] != values.MASK:
                yield start, end
