"""The generated parts of docs. `python -m tests.docs.reference` (make docs) writes them; a test compares."""

import json
from collections.abc import Callable
from pathlib import Path

import click

from daskscope import errors
from daskscope.cli import EXIT_CODES, scope
from daskscope.options import OPTIONS
from daskscope.parsing import default_data
from tests.docs.collected import collected
from tests.docs.lake_tables import tables
from tests.docs.price_tables import price_tables
from tests.docs.privacy import always, switches
from tests.docs.python_names import python_names

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
END = "<!-- end -->"


def settings_table() -> str:
    rows = ["| key | environment | default | unit | meaning |", "| --- | --- | --- | --- | --- |"]
    for o in OPTIONS:
        rows.append(f"| `{o.key}` | `{o.environment}` | `{json.dumps(o.default)}` | {o.unit} | {o.meaning} |")
    return "\n".join(rows)


def error_classes() -> list[type[errors.DaskscopeError]]:
    found = [value for value in vars(errors).values() if isinstance(value, type)]
    return [kind for kind in found if issubclass(kind, errors.DaskscopeError)]


def errors_table() -> str:
    rows = ["| error | is also a | exit code | when |", "| --- | --- | --- | --- |"]
    for kind in error_classes():
        parents = ", ".join(f"`{base.__name__}`" for base in kind.__bases__ if base is not Exception)
        code = next((number for known, number in EXIT_CODES.items() if issubclass(kind, known)), 1)
        rows.append(f"| `{kind.__name__}` | {parents} | {code} | {(kind.__doc__ or '').partition(chr(10))[0]} |")
    return "\n".join(rows)


def command_names() -> list[str]:
    return scope.list_commands(click.Context(scope))


def cli_help() -> str:
    parts = [_help(scope, "daskscope", None)]
    context = click.Context(scope, info_name="daskscope", help_option_names=scope.context_settings["help_option_names"])
    for name in command_names():
        command = scope.get_command(context, name)
        assert command is not None
        parts += _sections(command, name, context)
    return "\n\n".join(parts)


def _sections(command: click.Command, name: str, parent: click.Context) -> list[str]:
    """A command's section, and those of the commands under it."""
    context = _context(command, name, parent)
    inner = command.commands if isinstance(command, click.Group) else {}
    own = f"## {context.command_path}\n\n{_help(command, name, parent)}"
    return [own, *(section for key in sorted(inner) for section in _sections(inner[key], key, context))]


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    # A context made by hand does not take the settings of its command, and click keeps the first names it meets.
    names = scope.context_settings["help_option_names"]
    return click.Context(
        command, info_name=name, parent=parent, terminal_width=100, max_content_width=100, help_option_names=names
    )


def _help(command: click.Command, name: str, parent: click.Context | None) -> str:
    context = _context(command, name, parent)
    return "\n".join(f"    {line}".rstrip() for line in command.get_help(context).splitlines())


PARTS: dict[str, Callable[[], str]] = {
    "settings": settings_table,
    "errors": errors_table,
    "cli": cli_help,
    "python": python_names,
    "collected": collected,
    "prices": price_tables,
    "tables": tables,
    "switches": switches,
    "always": always,
}
PRIVACY = ("switches", "always")
"""Parts that stand on the page about privacy."""


def page(name: str) -> Path:
    return FOLDER.parent / "privacy.md" if name in PRIVACY else FOLDER / f"{name}.md"


def renewed(name: str) -> str:
    """The page with its generated part as it should be."""
    text = page(name).read_text(encoding="utf-8")
    head, mark, rest = text.partition(f"<!-- generated: {name} -->\n")
    _, end, tail = rest.partition(END)
    assert mark, f"{name}.md has no generated part"
    assert end, f"the generated part of {name}.md has no end"
    made = PARTS[name]().replace(str(default_data()), "<your data folder>")
    return f"{head}{mark}\n{made}\n\n{end}{tail}"


if __name__ == "__main__":
    for part in PARTS:
        page(part).write_text(renewed(part), encoding="utf-8")
