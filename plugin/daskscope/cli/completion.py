"""The command that teaches a shell what may follow `daskscope`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from daskscope import cli

SHELLS = ("bash", "zsh", "fish")
PROGRAM, VARIABLE = "daskscope", "_DASKSCOPE_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print what makes SHELL complete commands, options and the numbers of clusters.

    \b
    bash: eval "$(daskscope completion bash)" in ~/.bashrc
    zsh:  eval "$(daskscope completion zsh)" in ~/.zshrc
    fish: daskscope completion fish > ~/.config/fish/completions/daskscope.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.ClickException(f"This release of click knows nothing of {shell}: pip install -U click")
    click.echo(kind(cli.scope, {}, PROGRAM, VARIABLE).source())
