"""docs/reference/prices.md says what the code does with prices."""

import re

import pytest

from daskscope_lambdas.service.price_file import _OWN, merged, packaged, read_override
from daskscope_lambdas.service.prices import GIB_PER_CORE
from tests.docs.reference import page

TEXT = page("prices").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.M | re.S)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_every_example_is_a_file_that_may_be_set(number: int) -> None:
    found = read_override(EXAMPLES[number].encode(), "account acme", "example")
    assert merged(packaged(), found).tables[0] != packaged().tables[0]


def test_every_key_has_its_example_and_its_line() -> None:
    assert len(EXAMPLES) >= 3
    for key in _OWN:
        assert any(re.search(rf"^{key}:", example, re.M) for example in EXAMPLES), key
        assert f"| `{key}` |" in TEXT, key


def test_figures_of_the_text_are_those_of_the_code() -> None:
    assert f"{GIB_PER_CORE:g} GiB a thread" in TEXT
