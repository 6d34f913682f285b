import errno
import json
import logging
import os
import stat
from pathlib import Path

import pytest

from daskscope.errors import SettingsError
from daskscope_lambdas.embedded import occupancy
from daskscope_lambdas.embedded.occupancy import Occupant, occupant, occupied

ADDRESS = "https://dask.example"


def test_a_folder_has_one_server_and_the_next_when_that_has_ended(tmp_path: Path) -> None:
    assert occupant(tmp_path) is None
    with occupied(tmp_path) as ours:
        assert occupant(tmp_path) is None, "it does not listen yet"
        with pytest.raises(SettingsError, match="another `daskscope serve` has this one"), occupied(tmp_path):
            pass
        ours.tell(ADDRESS)
        assert occupant(tmp_path) == Occupant(pid=os.getpid(), address=ADDRESS)
        with pytest.raises(SettingsError, match=f"process {os.getpid()} at {ADDRESS} has this one"), occupied(tmp_path):
            pass
        assert occupant(tmp_path), "who was refused changed nothing"
    assert occupant(tmp_path) is None
    assert stat.S_IMODE((tmp_path / occupancy.FILE).stat().st_mode) == 0o600
    with occupied(tmp_path) as next_one:
        next_one.tell("http://h")
        assert occupant(tmp_path) == Occupant(pid=os.getpid(), address="http://h"), "nothing is left of a longer one"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"pid": 1}', '{"pid": "x", "address": ""}', json.dumps({"pid": -1, "address": ""})]
)
def test_what_names_no_living_server_is_nobodys(tmp_path: Path, text: str) -> None:
    (tmp_path / occupancy.FILE).write_text(text)
    assert occupant(tmp_path) is None
    with occupied(tmp_path):
        pass


@pytest.mark.parametrize("why", ["no locks here", "no fcntl"])
def test_where_there_are_no_locks_nobody_is_kept_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, why: str
) -> None:
    def unknown(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks here")

    if why == "no fcntl":
        monkeypatch.setattr(occupancy, "fcntl", None)
    else:
        monkeypatch.setattr("fcntl.flock", unknown)
    with caplog.at_level(logging.WARNING), occupied(tmp_path), occupied(tmp_path):
        assert caplog.text.count("cannot be locked") == 2
