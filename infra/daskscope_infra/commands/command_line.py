"""What the commands `deploy`, `destroy` and `bootstrap` have in common."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager

import click

from daskscope_infra import settings
from daskscope_infra.commands.toolchain import ROOT

context_option = click.option(
    "--context", "given", multiple=True, metavar="KEY=VALUE", help="As in docs/deploy.md; may be repeated."
)
yes_option = click.option("--yes", is_flag=True, help="Ask nothing.")


def choose(given: tuple[str, ...]) -> settings.Settings:
    """The settings that the app will read: those given, over cdk.json's. Raises ClickException that names the key."""
    context: dict[str, object] = json.loads((ROOT / "cdk.json").read_text()).get("context", {})
    for pair in given:
        key, separator, value = pair.partition("=")
        if not separator:
            raise click.ClickException(f"{pair!r} is no context: say KEY=VALUE, like daskscope:architecture=x86_64.")
        # The CDK would take any key, and a misspelt one would change nothing.
        if not key.startswith(settings.PREFIX):
            raise click.ClickException(
                f"{key} is no key of ours: they start with {settings.PREFIX}, like {settings.PREFIX}name."
            )
        context[key] = value
    return settings.read(context)


def agree(question: str, yes: bool) -> None:
    """Goes on if the answer is yes; else ends the command."""
    if not yes and not click.confirm(question):
        raise click.Abort


@contextmanager
def interruptible(sentence: str) -> Generator[None]:
    """Ctrl-C, no for an answer, or nobody there to ask: `sentence` says how things stand."""
    try:
        yield
    except (KeyboardInterrupt, click.Abort) as why:
        click.echo(f"\n{sentence}", err=True)
        # A prompt makes the same of Ctrl-C and of no.
        raise SystemExit(130 if isinstance(why, KeyboardInterrupt) else 1) from None
