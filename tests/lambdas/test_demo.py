import logging
from collections.abc import Iterator

import pytest

from daskscope_lambdas.demo import _unless_interrupted


@pytest.fixture
def asyncio_logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("asyncio")
    level = logger.level
    yield logger
    logger.setLevel(level)


def test_only_an_interrupt_silences_what_asyncio_says_of_abandoned_tasks(asyncio_logger: logging.Logger):
    def interrupted() -> int:
        raise KeyboardInterrupt

    assert _unless_interrupted(lambda: 20) == 20
    assert asyncio_logger.isEnabledFor(logging.ERROR)
    with pytest.raises(KeyboardInterrupt):
        _unless_interrupted(interrupted)
    assert not asyncio_logger.isEnabledFor(logging.ERROR)
