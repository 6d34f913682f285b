"""What happened, as Python lists: the methods of a session as functions, each call with a session of the settings.

Names and arguments are those that users of `coiled.analytics` know; `workspace` is another word for `account`. Lists
are fetched to the end, latest first as a rule. Every function raises the errors of `daskscope.errors`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from daskscope.arguments import Origin, Status
from daskscope.session import Session

__all__ = ["Origin", "Status"]

P = ParamSpec("P")
R = TypeVar("R")


def connect(
    server: str | Path | None = None,
    token: str | None = None,
    account: str | None = None,
    *,
    keys: str | None = None,
) -> Session:
    """A session with a server, or with a lake that is read in this process: `s3://BUCKET/PREFIX`, or a folder.

    `account` is the one that is asked about unless a call says otherwise. `keys` tells where the keys to users' code
    are, where a lake is read without its server; without them there is no code. Leave it by `with`, or `disconnect()`.
    """
    return Session(server, token, account, keys=keys)


def _of_settings(method: Callable[Concatenate[Session, P], R]) -> Callable[P, R]:
    @functools.wraps(method)
    def ask(*args: P.args, **options: P.kwargs) -> R:
        with Session() as session:
            return method(session, *args, **options)

    signature = inspect.signature(method)
    own = [each for name, each in signature.parameters.items() if name != "self"]
    ask.__signature__ = signature.replace(parameters=own)  # pyright: ignore[reportAttributeAccessIssue] - what inspect reads, help() and editors with it
    ask.__qualname__, ask.__module__ = ask.__name__, __name__
    return ask


change_performance_report = _of_settings(Session.change_performance_report)
close = _of_settings(Session.close)
compare = _of_settings(Session.compare)
compare_hardware = _of_settings(Session.compare_hardware)
costs = _of_settings(Session.costs)
create_token = _of_settings(Session.create_token)
delete_performance_report = _of_settings(Session.delete_performance_report)
download_performance_report = _of_settings(Session.download_performance_report)
get_cluster = _of_settings(Session.get_cluster)
get_computation = _of_settings(Session.get_computation)
get_performance_report = _of_settings(Session.get_performance_report)
get_profile = _of_settings(Session.get_profile)
invite_user = _of_settings(Session.invite_user)
list_audit = _of_settings(Session.list_audit)
list_clusters = _of_settings(Session.list_clusters)
list_code = _of_settings(Session.list_code)
list_computations = _of_settings(Session.list_computations)
list_deaths = _of_settings(Session.list_deaths)
list_events = _of_settings(Session.list_events)
list_exceptions = _of_settings(Session.list_exceptions)
list_groups = _of_settings(Session.list_groups)
list_invitations = _of_settings(Session.list_invitations)
list_members = _of_settings(Session.list_members)
list_metrics = _of_settings(Session.list_metrics)
list_performance_reports = _of_settings(Session.list_performance_reports)
list_prefixes = _of_settings(Session.list_prefixes)
list_samples = _of_settings(Session.list_samples)
list_spans = _of_settings(Session.list_spans)
list_tasks = _of_settings(Session.list_tasks)
list_tokens = _of_settings(Session.list_tokens)
list_users = _of_settings(Session.list_users)
list_workers = _of_settings(Session.list_workers)
logs = _of_settings(Session.logs)
policy = _of_settings(Session.policy)
prices = _of_settings(Session.prices)
remove_user = _of_settings(Session.remove_user)
report = _of_settings(Session.report)
revoke_token = _of_settings(Session.revoke_token)
rotate_token = _of_settings(Session.rotate_token)
set_policy = _of_settings(Session.set_policy)
set_role = _of_settings(Session.set_role)
sql = _of_settings(Session.sql)
upload_performance_report = _of_settings(Session.upload_performance_report)
whoami = _of_settings(Session.whoami)
withdraw_invitation = _of_settings(Session.withdraw_invitation)
