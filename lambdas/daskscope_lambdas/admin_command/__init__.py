"""`daskscope admin`: straight to the stores, with the operator's own access to them and no server between.

Light to import: what it needs is loaded when it runs.
"""

from __future__ import annotations

import click

from daskscope_lambdas.admin_command.accounts import account
from daskscope_lambdas.admin_command.delete import delete
from daskscope_lambdas.admin_command.letters import dead_letters, replay
from daskscope_lambdas.admin_command.prices import prices
from daskscope_lambdas.admin_command.retention import retention
from daskscope_lambdas.admin_command.tokens import token
from daskscope_lambdas.admin_command.users import user


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def admin() -> None:
    """Look after a server, with your own access to what it keeps.

    Which server: --data names the folder of a `daskscope serve`, --stack what `make deploy` made; else DASKSCOPE_WORLD
    and what goes with it, as the functions have them.
    """


admin.add_command(account)
admin.add_command(dead_letters)
admin.add_command(delete)
admin.add_command(prices)
admin.add_command(replay)
admin.add_command(retention)
admin.add_command(token)
admin.add_command(user)
