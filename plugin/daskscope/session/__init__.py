"""Asking: a session with one server, or with a lake in its place."""

from __future__ import annotations

from daskscope.session.acts import Acts
from daskscope.session.bills import Bills
from daskscope.session.clusters import Clusters
from daskscope.session.happenings import Happenings
from daskscope.session.lines import Lines
from daskscope.session.processes import Processes
from daskscope.session.query import Query
from daskscope.session.reports import Reports
from daskscope.session.rules import Rules
from daskscope.session.tokens import Tokens
from daskscope.session.users import Users
from daskscope.session.work import Work

__all__ = ["Session"]


class Session(Clusters, Work, Processes, Lines, Happenings, Bills, Reports, Query, Users, Tokens, Rules, Acts):
    """All that the module's functions ask, of one server and with one connection.

        with daskscope.connect("https://daskscope.example.org") as team:
            team.list_clusters(user="ann")

    `server` is an address, `s3://BUCKET/PREFIX` or a folder with a lake (read in this process, without a server), or
    None for the setting; `keys` is where the keys to users' code are, of a lake alone. `close(cluster)` closes a
    cluster; what ends the session is `with`, or `disconnect()`. Raises SettingsError, ServerUnreachable, and
    ImportError where a lake needs `pip install 'daskscope[direct]'`.
    """
