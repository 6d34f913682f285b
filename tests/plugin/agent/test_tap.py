"""The tap in real logging: each record once, and nothing changes for those who log."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import logging.config
from collections.abc import Generator
from typing import Any

import pytest

from daskscope.agent.tap import Tap


class Kept(logging.Handler):
    """Somebody else's handler."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


class Ear:
    """A tap that is attached, and what it heard."""

    def __init__(self, level: int = logging.WARNING) -> None:
        self.texts: list[str] = []
        self.tap = Tap(level, lambda record: self.texts.append(record.getMessage()))
        self.tap.attach()


@contextlib.contextmanager
def bare() -> Generator[None]:
    """A process in which nobody has configured logging; `pytest` has handlers at the root. All is as it was after."""
    theirs, logging.root.handlers = logging.root.handlers, []
    factory, last, level = logging.getLogRecordFactory(), logging.lastResort, logging.root.level
    manager = logging.Logger.manager
    known = set(manager.loggerDict)
    try:
        yield
    finally:
        left = [handler for handler in logging.root.handlers if isinstance(handler, Tap)]
        logging.root.handlers = theirs
        logging.root.setLevel(level)
        for name in set(manager.loggerDict) - known:
            del manager.loggerDict[name]
    assert logging.getLogRecordFactory() is factory
    assert logging.lastResort is last
    assert left == []


@contextlib.contextmanager
def heard(level: int = logging.WARNING) -> Generator[Ear]:
    with bare():
        ear = Ear(level)
        try:
            yield ear
        finally:
            ear.tap.detach()


def configured(shape: str) -> logging.Logger:
    """A logger, and handlers somewhere on the way of its records."""
    parent, child = logging.getLogger("house"), logging.getLogger("house.room")
    if shape in ("root", "root and child"):
        logging.root.addHandler(Kept())
    if shape in ("child", "root and child"):
        child.addHandler(Kept())
    if shape in ("apart", "apart without handler"):
        parent.propagate = False
    if shape == "apart":
        parent.addHandler(Kept())
    if shape == "library":
        parent.addHandler(logging.NullHandler())
    return child


SHAPES = ["root", "child", "root and child", "apart", "apart without handler", "library", "nothing"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_record_is_heard_once_wherever_it_ends_up(shape: str, when: str) -> None:
    with bare():
        logger = configured(shape) if when == "before" else logging.getLogger("house.room")
        attached = Ear()
        if when == "after":
            logger = configured(shape)
        logger.warning("one %d", 1)
        logger.warning("two")
        assert attached.texts == ["one 1", "two"]
        attached.tap.detach()
        places = (logging.root, logger, logging.getLogger("house"))
        assert not [handler for place in places for handler in place.handlers if isinstance(handler, Tap)]
        logger.warning("three")
        assert attached.texts == ["one 1", "two"]


def test_basic_config_works_as_it_would_without_us() -> None:
    with heard() as ear:
        logging.getLogger("mine").warning("before")
        logging.basicConfig(level=logging.INFO)
        assert [type(handler) for handler in logging.root.handlers] == [logging.StreamHandler]
        logging.getLogger("mine").warning("after")
        assert ear.texts == ["before", "after"]
        logging.root.handlers[0].close()


def test_the_first_line_of_a_process_is_heard(capsys: pytest.CaptureFixture[str]) -> None:
    with heard() as ear:
        logging.warning("first")  # it calls basicConfig() on its way
        assert ear.texts == ["first"]
        assert capsys.readouterr().err == "WARNING:root:first\n"


def test_what_nobody_handles_is_still_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with heard() as ear:
        logging.getLogger("mine").warning("told")
        assert capsys.readouterr().err == "told\n"
        assert ear.texts == ["told"]


def test_a_lower_level_is_heard_and_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with heard(logging.INFO) as ear:
        logging.getLogger("mine").setLevel(logging.INFO)
        logging.getLogger("mine").info("quiet")
    assert ear.texts == ["quiet"]
    assert capsys.readouterr().err == ""


def test_levels_stay_as_they_are_and_decide() -> None:
    with heard() as ear:
        kept = Kept()
        logging.root.addHandler(kept)
        logging.getLogger("mine").setLevel(logging.DEBUG)
        logging.getLogger("mine").info("below our level")
        logging.getLogger("other").setLevel(logging.ERROR)
        logging.getLogger("other").warning("below theirs")
        assert (kept.texts, ear.texts) == (["below our level"], [])
        assert logging.getLogger("mine").level == logging.DEBUG


def test_what_a_logger_s_filter_takes_out_is_not_heard_and_what_it_redacts_is_heard_redacted() -> None:
    with heard() as ear:

        def redact(record: logging.LogRecord) -> bool:
            record.msg = str(record.msg).replace("secret", "***")
            return "drop" not in record.msg

        logging.getLogger("mine").addFilter(redact)
        logging.getLogger("mine").warning("my secret")
        logging.getLogger("mine").warning("drop this")
        assert ear.texts == ["my ***"]


def test_a_logger_that_propagates_later_is_still_heard_once() -> None:
    with heard() as ear:
        logger = configured("apart")
        logger.warning("apart")
        logging.root.addHandler(Kept())
        logging.getLogger("house").propagate = True
        logger.warning("together")
        assert ear.texts == ["apart", "together"]


def test_a_new_configuration_that_throws_all_handlers_out_is_survived() -> None:
    with heard() as ear:
        logging.root.addHandler(Kept())
        logging.getLogger("mine").warning("before")
        logging.config.dictConfig(
            {
                "version": 1,
                "disable_existing_loggers": False,
                "handlers": {"null": {"class": "logging.NullHandler"}},
                "root": {"handlers": ["null"]},
            }
        )
        logging.getLogger("mine").warning("after")
        assert ear.texts == ["before", "after"]


def test_two_taps_end_in_either_order() -> None:
    with heard() as ear:
        other = Ear()
        third = Ear()
        logging.getLogger("mine").warning("all")
        other.tap.detach()
        logging.getLogger("mine").warning("two")
        third.tap.detach()
        logging.getLogger("mine").warning("one")
        assert (ear.texts, other.texts, third.texts) == (["all", "two", "one"], ["all"], ["all", "two"])


def another_tap_class() -> type[Tap]:
    """As on a worker that two schedulers sent their agents to by value: the same code, another class."""
    spec = importlib.util.find_spec(Tap.__module__)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Tap


def test_taps_of_other_classes_know_each_other() -> None:
    one, two = another_tap_class(), another_tap_class()
    assert one is not two
    with heard() as ear:
        texts: list[str] = []
        first, second = (each(logging.WARNING, lambda record: texts.append(record.msg)) for each in (one, two))
        first.attach()
        second.attach()
        logging.getLogger("mine").warning("all")
        first.detach()
        logging.getLogger("mine").warning("both")
        second.detach()
        logging.getLogger("mine").warning("one")
    assert texts == ["all", "all", "both"]
    assert ear.texts == ["all", "both", "one"]


def test_a_record_s_maker_that_came_after_us_stays() -> None:
    with bare():
        attached = Ear()
        ours = logging.getLogRecordFactory()

        def theirs(*args: Any, **kwargs: Any) -> logging.LogRecord:
            return ours(*args, **kwargs)

        logging.setLogRecordFactory(theirs)
        attached.tap.detach()
        assert logging.getLogRecordFactory() is theirs
        logging.getLogger("mine").warning("after")
        assert attached.texts == []
        logging.setLogRecordFactory(logging.LogRecord)


def test_a_record_that_came_from_another_process_is_heard() -> None:
    with heard() as ear:
        record = logging.makeLogRecord({"msg": "unpickled", "levelno": logging.WARNING, "name": "mine"})
        logging.getLogger("mine").handle(record)
        assert ear.texts == ["unpickled"]
