"""Shape of the registry's DynamoDB table. Standard library only: the infrastructure makes it, adapters/aws fills it.

One table, one text key. No two kinds of item share one, and none is written by all clusters of an account:

    cluster/<uuid>             a cluster: written by each of its messages, and by who asks it to close; of a deleted one
                               that it was
    number/<account>/<id>      whose number that is: written once
    account/<account>          the last number given out: written once a cluster
    token/<key id>             a token: written anew on each day on which it is used
    user/<user>                that the name is somebody's, for ever; the key in small letters
    member/<account>/<user>    what a person is in an account, and
    joined/<user>/<account>    that they are in it, for the list of the person: the two come and go together
    peopled/<account>          that somebody is in it, for the list of accounts
    ticket/<SHA-256>           what is good once; goes by itself
    report/<account>/<id>      a report that somebody keeps
    reporter/<account>         the last number given out to a report
    seals                      the boundary between sealed and open days
    deletion/<account>/<uuid>  what is to go: a cluster, or with `*` the account; until nothing is left of it
    policy/<account>           what the account wants: an attribute for each subject

Two sparse, keys-only indexes. What stands in them does not change while a cluster lives, so that a message writes its
own item and nothing else:

    listing    LISTED_IN, LISTED_AT    clusters, tokens, members, tickets and reports by account, the accounts of a
                                       person, accounts, deletions, policies: as lists go
    living     LIVES_IN                clusters that have not ended, as far as anybody knows
"""

from __future__ import annotations

KEY = "key"
"""Partition key (S); there is no sort key."""

LISTING = "listing"
LISTED_IN = "listed_in"
"""Partition key (S) of LISTING: `clusters/<account>`, `tokens/<account>`, `members/<account>`, `tickets/<account>`,
`reports/<account>`, `joined/<user>`, `accounts`, `peopled`, `reporters`, `deletions` or `policies`."""
LISTED_AT = "listed_at"
"""Sort key (S) of LISTING: text that sorts like the list."""

LIVING = "living"
LIVES_IN = "lives_in"
"""Partition key (S) of LIVING; there is no sort key."""

USED_ON = "used_on"
"""Of a token, the day on which it was used last (S, ISO): all that whoever takes in messages may change of one."""

FORGET_AT = "forget_at"
"""Time-to-live (N, epoch seconds), on items that may go by themselves."""
