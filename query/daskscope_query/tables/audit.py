"""What was done to an account."""

from __future__ import annotations

from daskscope_query.tables.column import NAME, ORIGIN, Column, Table

AUDIT = Table(
    "audit", "Acts of those who look after an account, as they were done; only ever added to.", ("account", "boot"),
    (
        *ORIGIN,
        Column("actor", NAME, "", "Who: a user; `token <name>`, a site's; `operator <name>`, with the stores at hand."),
        Column("role", NAME, "", "What the user was in the account; null for a token of a site and for an operator."),
        Column("key_id", NAME, "", "Of the token or session; null for an operator."),
        Column("address", NAME, "", "Whence the request came; null if nothing tells."),
        Column("action", NAME, "", "What, like token.revoke or user.role."),
        Column("target", NAME, "", "Of what: a key id, a user, a report's number, ..."),
        Column("detail", NAME, "", "What else there is to tell, JSON."),
    ),
)  # fmt: skip
"""No cluster's: `cluster` is empty, `cluster_id` 0, `boot` an id of the act that sorts by time, `seq` 0."""
