"""What was done to an account by those who look after it: written into the lake before it is done, and only ever added.

An act that could not be written down is not done. One that failed after it was written stands there all the same: the
rows tell what somebody set out to do.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import pyarrow as pa

from daskscope_lambdas.ports import Clock, ObjectStore, Role, Seals
from daskscope_lambdas.service.found import Asker, Found, days_since, found_in
from daskscope_lambdas.service.tokens import Principal
from daskscope_lambdas.service.write import keep
from daskscope_query import files, layout
from daskscope_query.tables import AUDIT

Action = Literal[
    "account.create", "cluster.close", "data.delete", "login.approve", "login.link", "policy.set", "prices.set",
    "report.delete", "report.visibility", "token.create", "token.revoke", "token.rotate", "user.invite", "user.join",
    "user.remove", "user.role",
]  # fmt: skip
