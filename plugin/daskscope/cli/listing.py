"""What the commands that list something share: their options, and where their records go."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from daskscope.cli.asking import asking, hint, named
from daskscope.cli.formats import FORMATS, TABLE, chosen, write
from daskscope.cli.table import table
from daskscope.records import Records

Show = Callable[[Records], str]
Asking = Callable[[Callable[..., Any]], Callable[..., Any]]
NOTHING = "No records."
_EXIT_CODE = "daskscope.exit_code"


def ends_with(code: int) -> None:
    """What this command exits with, once its records are written."""
    click.get_current_context().meta[_EXIT_CODE] = code


def formatted(*forms: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """--format, --json and --no-color; the command gets `form`, one of these, of which the first is the default."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.option("--format", "form", type=click.Choice(forms), help=f"How it is written.  [default: {forms[0]}]")
        @click.option("--json", "as_json", is_flag=True, help="Short for --format json: one document.")
        @click.option("--no-color", "is_plain", is_flag=True, help="No colours on a terminal; so does NO_COLOR=1.")
        @functools.wraps(command)
        def run(*arguments: Any, form: str | None, as_json: bool, is_plain: bool, **options: Any) -> Any:
            if as_json and form not in (None, "json"):
                raise click.UsageError(f"--json and --format {form}: say one.")
            if is_plain:
                click.get_current_context().color = False
            return command(*arguments, form="json" if as_json else form or forms[0], **options)

        return run

    return decorate


def shaped(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options for what of a list is written, and how: `form`, `columns` and `limit`."""
    decorators = (
        formatted(*FORMATS),
        click.option("--columns", metavar="NAME,...", help="Only these keys of the records, in this order."),
        click.option("--limit", type=click.IntRange(min=1), help="At most so many from the start of the list."),
    )
    return functools.reduce(lambda inner, decorate: decorate(inner), reversed(decorators), command)


def listing(
    command: Callable[..., Records], show: Show = table, nothing: str = NOTHING, asking: Asking = asking
) -> click.Command:
    """A command that writes the Records of `command(session, ...)`, with the options that every list has.

    `show` is how a table of them looks, `nothing` what is said on a terminal where there are none, and `asking` adds
    whom to ask.
    """

    n_own = len(getattr(command, "__click_params__", ()))

    @functools.wraps(command)
    def run(session: Any, *, form: str, columns: str | None, **options: Any) -> None:
        put(command(session, **options), form, columns, show, nothing)
        ctx = click.get_current_context()
        if code := ctx.meta.get(_EXIT_CODE):
            ctx.exit(code)

    made = click.command()(shaped(asking(run)))
    n_common = len(made.params) - n_own
    # In the help, what is its own comes before what all lists have.
    made.params = made.params[n_common:] + made.params[:n_common]
    return made


def put(found: Records, form: str, columns: str | None, show: Show, nothing: str) -> None:
    """Records to stdout, and what is to be said of them to stderr."""
    records = chosen(found, named(columns))
    if form != TABLE:
        write(records, form)
    elif records:
        click.echo((show if columns is None else table)(records))
    else:
        hint(nothing)
    total: object = found.total
    if isinstance(total, int) and total > len(found):
        hint(f"{len(found):,} of {total:,}: --limit takes more.")
