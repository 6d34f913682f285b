"""What is in force in this process, and where each value came from: a file, the environment, the process itself.

Read as Dask reads them: YAML files in the order of `dask.config.paths`, then the environment; of two that say the same
key, the later wins. What is in force and stands in neither was set in the process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import dask.config

from daskscope.discovery import Server, file_of, find_server, named_server, shared_folder
from daskscope.display import HIDDEN, Display
from daskscope.errors import SettingsError
from daskscope.options import OPTIONS, Option
from daskscope.records import Records
from daskscope.settings import KEYS, Settings, configured, flat, no_option

DEFAULT, PROCESS, IMPORT = "default", "set in this process", "set when daskscope is imported"
COLUMNS = ("key", "value", "source", "problem")

NFRAMES, IDLE_TIMEOUT = "distributed.diagnostics.computations.nframes", "distributed.scheduler.idle-timeout"
DASKS_OWN = {
    NFRAMES: "Frames of code that Dask's client sends with a computation; with 0 none leaves it.",
    IDLE_TIMEOUT: "Dask's own idle timeout; it wins over daskscope.analytics.idle.timeout.",
}
"""Settings of Dask's that daskscope touches or obeys, with what they do."""

_INHERITED = "DASK_INTERNAL_INHERIT_CONFIG"
"""By which Dask hands a configuration to processes that it starts; other variables win over it."""


@dataclass(frozen=True, slots=True)
class Layer:
    """What one place says: keys with dots to values."""

    source: str
    values: dict[str, Any]


def config() -> Records:
    """Every option with the value in force and its source; then Dask's settings that matter here; then what is no
    option.

    Rows have `key`, `value`, `source`, `problem` (why the value cannot be used), `environment` (the variable that sets
    it) and `meaning`. Tokens, and an address that cannot be used, show as `(set)`; of patterns their number is
    shown; what looks like a secret elsewhere is masked. Raises SettingsError if what stands under `daskscope` is no
    mapping.
    """
    in_force = {f"daskscope.{key}": value for key, value in configured().items()}
    in_force |= {key: value for key in DASKS_OWN if (value := dask.config.get(key, None)) is not None}
    layers = [*(Layer(DEFAULT, _values(tree)) for tree in dask.config.defaults), *_files(), *_environment()]
    display = Display(in_force)
    rows = [_of_option(option, in_force, layers, display) for option in OPTIONS]
    rows += [_row(key, in_force.get(key), _source(key, in_force, layers), meaning=DASKS_OWN[key]) for key in DASKS_OWN]
    strangers = [key for key in configured() if key not in KEYS]
    for key in strangers:
        rows.append(_row(f"daskscope.{key}", HIDDEN, _source(f"daskscope.{key}", in_force, layers), no_option(key)))
    return Records(rows, columns=COLUMNS)


def destination(settings: Settings) -> str:
    """A sentence: where `register()` here would have a cluster report to, and how that was found. Asks no network."""
    if settings.disabled:
        return "Nothing is sent: daskscope.analytics.disabled is true."
    if (shared := shared_folder(settings.server)) is not None:
        return f"Clusters registered here keep their messages in the folder {shared}, as daskscope.server says."
    found = find_server(settings)
    if found is None:
        return (
            "No server is set and none runs on this machine: messages are kept in the folder "
            f"{settings.data}/spool of the scheduler's machine."
        )
    said = "as daskscope.server says" if settings.server else "where `daskscope login` was"
    how = said if named_server(settings) else f"found by {file_of(settings)}"
    whose = f" (account {found.ingest_account})" if found.ingest_account else ""
    return f"Clusters registered here report to {found.url}{whose}, {how}, with {_token(settings, found)}."


def _token(settings: Settings, found: Server) -> str:
    if settings.ingest_token is not None:
        return "the token of daskscope.ingest-token"
    if settings.token is not None:
        return "the token of daskscope.token"
    if found.ingest_token is None:
        return "no token"
    is_of_login = settings.login is not None and found.ingest_token == settings.login.ingest_token
    return "the token of `daskscope login`" if is_of_login else "the token that the server on this machine lends"


def _files() -> Iterator[Layer]:
    # Older Dasks do not tell which file said what: so one file at a time.
    for path in map(Path, dask.config.paths):
        files = [path]
        if path.is_dir():
            files = sorted(path.iterdir()) if os.access(path, os.R_OK | os.X_OK) else []
        for file in files:
            if file == path or file.suffix.lower() in (".json", ".yaml", ".yml"):
                yield from (Layer(str(file), _values(tree)) for tree in dask.config.collect_yaml([str(file)]))


def _environment() -> Iterator[Layer]:
    names = [name for name in os.environ if name.startswith("DASK_")]
    for name in sorted(names, key=lambda name: name != _INHERITED):
        yield Layer(name, _values(dask.config.collect_env({name: os.environ[name]})))


def _values(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Of a whole configuration, what matters here."""
    whole = dict(tree)
    found = {key: value for key in DASKS_OWN if (value := dask.config.get(key, None, config=whole)) is not None}
    ours: object = whole.get("daskscope")
    if isinstance(ours, Mapping):
        found |= {f"daskscope.{key}": value for key, value in flat(cast("Mapping[str, Any]", ours)).items()}
    return found


def _source(key: str, in_force: Mapping[str, Any], layers: list[Layer]) -> str:
    if key not in in_force:
        return DEFAULT
    saying = [layer for layer in layers if key in layer.values]
    value, said = in_force[key], saying[-1].values[key] if saying else None
    if isinstance(value, Mapping):  # tags: each place adds to those before it
        said = {name: tag for layer in saying if isinstance(tags := layer.values[key], Mapping)
                for name, tag in cast("Mapping[Any, Any]", tags).items()}  # fmt: skip
        if said == value:
            return ", ".join(layer.source for layer in saying)
    elif saying and said == value:
        return saying[-1].source
    by_us = key == NFRAMES and value == 2 and all(layer.source == DEFAULT for layer in saying)
    return IMPORT if by_us else PROCESS


def _of_option(option: Option, in_force: Mapping[str, Any], layers: list[Layer], display: Display) -> dict[str, Any]:
    key = f"daskscope.{option.key}"
    value, problem = in_force.get(key, option.default), ""
    try:
        used = option.parse(option.key, value)
        value = used if value is None else value  # what null stands for: a folder
    except SettingsError as error:
        problem = f"allowed: {error.allowed}"
    shown = display.of(option, value, is_usable=not problem)
    return _row(key, shown, _source(key, in_force, layers), problem, option.environment, option.meaning)


def _row(
    key: str, value: Any, source: str, problem: str = "", environment: str = "", meaning: str = ""
) -> dict[str, Any]:
    return {
        "key": key,
        "value": value,
        "source": source,
        "problem": problem,
        "environment": environment or _variable(key),
        "meaning": meaning,
    }


def _variable(key: str) -> str:
    return "DASK_" + key.replace(".", "__").replace("-", "_").upper()
