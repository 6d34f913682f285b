"""No code comes from the network: whatever could make code of data is not in our sources, but for what stands here."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOTS = ("plugin", "query", "lambdas")

FORBIDDEN = (
    "builtins.eval", "builtins.exec", "builtins.compile", "builtins.__import__",
    "importlib.import_module", "importlib.reload", "importlib.util", "importlib.machinery",
    "importlib.metadata.entry_points", "imp", "runpy", "code", "codeop", "pkgutil", "zipimport", "site",
    "pickle.load", "pickle.loads", "pickle.Unpickler", "_pickle", "cloudpickle.load", "cloudpickle.loads",
    "distributed.protocol.pickle.loads", "distributed.protocol.deserialize", "distributed.protocol.loads",
    "dill", "joblib", "marshal", "shelve", "copyreg", "ctypes", "cffi",
    "yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load", "yaml.Loader", "yaml.UnsafeLoader",
    "numpy.load", "pandas.read_pickle", "pandas.eval",
    "types.FunctionType", "types.CodeType", "types.ModuleType",
    "subprocess.Popen", "subprocess.run", "subprocess.call", "subprocess.check_call", "subprocess.check_output",
    "subprocess.getoutput", "subprocess.getstatusoutput", "multiprocessing.Process", "multiprocessing.Pool",
    "multiprocessing.get_context", "multiprocessing.connection.Client", "multiprocessing.connection.Listener",
    "concurrent.futures.ProcessPoolExecutor", "os.system", "os.popen", "os.fork", "os.exec", "os.spawn",
    "os.posix_spawn", "pty", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell", "pip", "ensurepip",
)  # fmt: skip
"""Modules and names; also whatever begins so: `os.exec` is `os.execv`, too."""

ALLOWED = {
    ("plugin/daskscope/__init__.py", "importlib.import_module"): "our own modules, by a table in that file",
    ("plugin/daskscope/agent/loading.py", "pickle.loads"): "our agent, which the scheduler sent to its worker: two "
    "processes of one cluster, which run each other's code anyway",
    ("plugin/daskscope/collect/exceptions.py", "pickle.loads"): "exceptions that this very process pickled: of a task "
    "that a worker failed, the scheduler has no bytes",
    ("plugin/daskscope/cli/__init__.py", "importlib.import_module"): "our own commands, by a table in that file",
    ("plugin/daskscope/cli/__init__.py", "importlib.metadata.entry_points"): "commands of packages that are installed",
    ("plugin/daskscope/direct.py", "importlib.metadata.entry_points"): "the reader of lakes, of a package that is "
    "installed",
    ("plugin/daskscope/extras.py", "importlib.import_module"): "pyarrow and pandas, as the code names them",
    ("lambdas/daskscope_lambdas/children.py", "subprocess.Popen"): "our own programs, with arguments of our own",
    (
        "lambdas/daskscope_lambdas/service/strict_yaml.py",
        "yaml.load",
    ): "by a SafeLoader, of plain values alone",
    ("lambdas/daskscope_lambdas/embedded/function.py", "importlib.import_module"): "our own handlers, as `serve` names "
    "them",
    ("lambdas/daskscope_lambdas/embedded/function.py", "multiprocessing.get_context"): "processes for these handlers",
    ("lambdas/daskscope_lambdas/embedded/function.py", "concurrent.futures.ProcessPoolExecutor"): "as above",
}
"""File and name, with the reason."""


def imported(tree: ast.AST) -> dict[str, str]:
    """Local name to what it stands for."""
    names: dict[str, str] = {name: f"builtins.{name}" for name in dir(builtins)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {(alias.asname or alias.name).partition(".")[0]: alias.name if alias.asname
                      else alias.name.partition(".")[0] for alias in node.names}  # fmt: skip
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def mentioned(source: str) -> set[str]:
    """Full names of all that a module imports or names, called or not."""
    tree = ast.parse(source)
    names = imported(tree)
    found = {full for local, full in names.items() if full != f"builtins.{local}"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, (ast.Name, ast.Attribute)) and (full := _full(node, names)):
            found.add(full)
    return found


def _full(node: ast.expr, names: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    if isinstance(node, ast.Attribute) and (owner := _full(node.value, names)):
        return f"{owner}.{node.attr}"
    return ""


def forbidden(source: str) -> set[str]:
    """Those of them that are forbidden, but for modules that are only imported for something of theirs."""
    found = {name for name in mentioned(source) if any(_within(name, each) for each in FORBIDDEN)}
    return {name for name in found if not any(other.startswith(f"{name}.") for other in found)}


def _within(name: str, entry: str) -> bool:
    return name == entry or name.startswith(f"{entry}.") or (entry.startswith("os.") and name.startswith(entry))


def places() -> Iterator[tuple[str, str]]:
    for root in ROOTS:
        for file in sorted((ROOT / root).rglob("*.py")):
            for name in sorted(forbidden(file.read_text())):
                yield str(file.relative_to(ROOT)), name


def test_nothing_makes_code_of_data_but_for_what_is_listed() -> None:
    assert set(places()) == ALLOWED.keys()


@pytest.mark.parametrize(
    "source",
    [
        "eval(reply)",
        "run = exec",
        "compile(text, '', 'exec')",
        "from builtins import eval as judge",
        "__import__(name)",
        "from importlib import import_module\nimport_module(name)",
        "import importlib.util as tool\ntool.spec_from_file_location",
        "import pickle as p\ndef f(x):\n    return p.loads(x)",
        "from pickle import loads",
        "from cloudpickle import loads as j",
        "from distributed.protocol.pickle import loads",
        "import marshal",
        "import yaml\nyaml.load(text)",
        "import subprocess\nsubprocess.run(reply)",
        "import os\nos.execv(a, b)",
        "import types\ntypes.FunctionType(c, {})",
        "import runpy",
    ],
)
def test_it_would_be_found(source: str) -> None:
    assert forbidden(source)


@pytest.mark.parametrize(
    "source", ["import pickle\npickle.dumps(x)", "import re\nre.compile(x)", "x.eval()", "json.loads(x)"]
)
def test_what_is_harmless_is_not(source: str) -> None:
    assert not forbidden(source)
