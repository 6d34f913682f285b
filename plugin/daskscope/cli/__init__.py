"""The commands `daskscope ...`, the same as `dask scope ...`. Of third parties only click is imported until one runs.

Exit codes: 0 done, 1 failure, 2 wrong use, 3 not logged in or not allowed, 4 not found, 5 server unreachable, 6 client
and server of versions that do not go together; 10 to 12 say what `status` and `exceptions --exit-code` found; 130
interrupted, 141 nobody reads on. What was asked for goes to stdout, everything else to stderr.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import sys
from typing import Any

import click

from daskscope import __version__
from daskscope.errors import (
    BadRequest,
    DaskscopeError,
    NotFound,
    NotLoggedIn,
    PermissionDenied,
    ServerUnreachable,
    SettingsError,
    VersionMismatch,
)

COMMANDS = {
    "audit": "daskscope.cli.audit:audit",
    "clusters": "daskscope.cli.lists:clusters",
    "code": "daskscope.cli.team:code",
    "compare": "daskscope.cli.compare:compare",
    "completion": "daskscope.cli.completion:completion",
    "computations": "daskscope.cli.lists:computations",
    "config": "daskscope.cli.config:config",
    "costs": "daskscope.cli.team:costs",
    "deaths": "daskscope.cli.lists:deaths",
    "doctor": "daskscope.cli.doctor:doctor",
    "events": "daskscope.cli.lists:events",
    "exceptions": "daskscope.cli.lists:exceptions",
    "export": "daskscope.cli.export:export",
    "groups": "daskscope.cli.inside:groups",
    "hardware": "daskscope.cli.team:hardware",
    "import": "daskscope.cli.importing:import_",
    "login": "daskscope.cli.login:login",
    "logout": "daskscope.cli.login:logout",
    "logs": "daskscope.cli.logs:logs",
    "members": "daskscope.cli.inside:members",
    "metrics": "daskscope.cli.team:metrics",
    "open": "daskscope.cli.open:open_",
    "policy": "daskscope.cli.policy:policy",
    "prefixes": "daskscope.cli.team:prefixes",
    "preview": "daskscope.cli.preview:preview",
    "prices": "daskscope.cli.prices:prices",
    "profile": "daskscope.cli.profile:profile",
    "report": "daskscope.cli.report:report",
    "samples": "daskscope.cli.inside:samples",
    "show": "daskscope.cli.show:show",
    "spans": "daskscope.cli.inside:spans",
    "sql": "daskscope.cli.sql:sql",
    "status": "daskscope.cli.status:status",
    "stop": "daskscope.cli.stop:stop",
    "tasks": "daskscope.cli.inside:tasks",
    "token": "daskscope.cli.token:token",
    "user": "daskscope.cli.user:user",
    "version": "daskscope.cli.version:version",
    "whoami": "daskscope.cli.version:whoami",
    "workers": "daskscope.cli.inside:workers",
}
"""The commands of the base install, loaded when they are asked for."""

GROUP = "daskscope.commands"
"""Entry points of the commands that need an extra of the same name as the command."""

EXIT_CODES: dict[type[DaskscopeError], int] = {
    SettingsError: 2,
    BadRequest: 2,
    NotLoggedIn: 3,
    PermissionDenied: 3,
    NotFound: 4,
    ServerUnreachable: 5,
    VersionMismatch: 6,
}
"""Error to exit code; any other is 1."""
INTERRUPTED, UNREAD = 130, 141
"""As shells have them for what ended by SIGINT and SIGPIPE."""


class LazyGroup(click.Group):
    """Loads each command when it is asked for, and turns daskscope's errors into messages and exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted(COMMANDS.keys() | {point.name for point in importlib.metadata.entry_points(group=GROUP)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name in COMMANDS:
            module, _, name = COMMANDS[cmd_name].partition(":")
            return getattr(importlib.import_module(module), name)
        for point in importlib.metadata.entry_points(group=GROUP, name=cmd_name):
            try:
                return point.load()
            except ModuleNotFoundError as error:
                return _missing(cmd_name, error)
        return None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            # What is still in the buffer would fail once more when Python ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(UNREAD)
        except DaskscopeError as error:
            raise Failure(error) from error
        except ModuleNotFoundError as error:
            if (command := ctx.invoked_subcommand or "") in COMMANDS:
                raise
            raise click.ClickException(_how_to_install(command, error)) from error
        except ImportError as error:
            if "pip install" not in str(error):  # as extras.py says it
                raise
            raise click.ClickException(str(error)) from error


class Failure(click.ClickException):
    """A DaskscopeError as click shows it: its message on stderr, an exit code of its kind, no traceback."""

    def __init__(self, error: DaskscopeError) -> None:
        super().__init__(str(error))
        self._error = error

    @property
    def exit_code(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride] - click reads it on the instance
        return next((code for kind, code in EXIT_CODES.items() if isinstance(self._error, kind)), 1)


def _missing(command: str, error: ModuleNotFoundError) -> click.Command:
    sentence = _how_to_install(command, error)

    def tell() -> None:
        raise click.ClickException(sentence)

    # Whatever arguments follow, the sentence is the answer.
    anything = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
    hint = f"Needs more: pip install 'daskscope[{command}]'."
    return click.Command(command, callback=tell, short_help=hint, context_settings=anything, add_help_option=False)


def _how_to_install(command: str, error: ModuleNotFoundError) -> str:
    if (error.name or "daskscope").partition(".")[0].startswith("daskscope"):
        raise error  # Our own module: not an extra that is missing but a fault.
    return f"`daskscope {command}` needs the package {error.name}: pip install 'daskscope[{command}]'"


@click.group(
    cls=LazyGroup, name="scope", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 88}
)
@click.version_option(__version__, message="%(version)s")
@click.pass_context
def scope(ctx: click.Context) -> None:
    """Every Dask cluster your team ever ran: did it finish, what failed, what took the time."""
    if os.environ.get("NO_COLOR"):
        ctx.color = False


def main() -> None:
    """The console script."""
    scope(prog_name="daskscope")
