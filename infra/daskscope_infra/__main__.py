"""The CDK app, which cdk.json names: writes the template, and makes what it says the functions hold."""

from __future__ import annotations

import sys
from functools import cache

import click
from aws_cdk import App
from aws_cdk import aws_lambda as lambda_

from daskscope_infra import settings
from daskscope_infra.bundles import Family, Target, build
from daskscope_infra.stack import DaskscopeStack, check


def main() -> None:
    """Raises ClickException for bad settings and bundles that cannot be made."""
    app = App(analytics_reporting=False)
    check(app)
    chosen = settings.read(app.node.get_all_context())
    target = Target(chosen.architecture, chosen.python)

    @cache
    def code(family: Family) -> lambda_.Code:
        return lambda_.Code.from_asset(str(build(family, target)))

    DaskscopeStack(app, chosen, code)
    app.synth()


if __name__ == "__main__":
    try:
        main()
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
