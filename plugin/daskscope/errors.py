"""Every error that daskscope raises to its users.

DaskscopeError
├── SettingsError (also ValueError)      a setting or argument that cannot be used: key, value, what is allowed
├── BadRequest (also ValueError)         the server does not take an argument: which one, and what is allowed
├── NotOnScheduler                       the scheduler's environment has no daskscope
├── ServerUnreachable (also ConnectionError)
├── NotLoggedIn                          no token, or one the server does not know
├── PermissionDenied                     the token's scope does not allow this
├── NotFound (also LookupError)          no such account, cluster or page
│   └── Deleted                          there was such a cluster, and somebody had it deleted
├── VersionMismatch                      the server speaks another API than this client: which of the two to upgrade
├── Conflict                             what is there does not allow it: a taken name, an account's last admin
│   └── NotClosable                      the cluster has ended, or lets nobody close it
├── BadMessage (also ValueError)         a message that is not of the format, with the place in it
│   ├── UnknownVersion                   of a version that this server cannot read
│   └── TooLarge                         over the limit, before or after decompression
└── ServerError                          the server answered something that is none of the above

Each message says what happened, why, and what to do.
"""

from __future__ import annotations


class DaskscopeError(Exception):
    """The root: `except DaskscopeError` catches whatever daskscope itself raises."""


class SettingsError(DaskscopeError, ValueError):
    """A setting cannot be used.

    `key` is its dotted name, `value` what was found, `allowed` a phrase that says what would do.
    """

    def __init__(self, key: str, value: object, allowed: str) -> None:
        self.key, self.value, self.allowed = key, value, allowed
        super().__init__(f"{key} is {value!r}; allowed: {allowed}.")


class BadRequest(DaskscopeError, ValueError):
    """HTTP 400: the server does not take an argument; the message names it and what is allowed."""


class NotOnScheduler(DaskscopeError):
    """The scheduler runs in an environment without daskscope."""


class ServerUnreachable(DaskscopeError, ConnectionError):
    """No answer from the server."""


class NotLoggedIn(DaskscopeError):
    """HTTP 401: no token, or one that is unknown, revoked or expired."""


class PermissionDenied(DaskscopeError):
    """HTTP 403: the token is good, its scopes do not cover this."""


class NotFound(DaskscopeError, LookupError):
    """HTTP 404: nothing of that name in what this token may see."""


class Deleted(NotFound):
    """HTTP 410: the cluster was deleted, and whatever comes of it is not kept."""


class Conflict(DaskscopeError):
    """HTTP 409: it is understood and allowed, but what is there stands against it; the message says what."""


class NotClosable(Conflict):
    """HTTP 409: a cluster that cannot be asked to close, for it has ended or lets nobody close it."""


class VersionMismatch(DaskscopeError):
    """Server and client are of releases that do not understand each other; the message says which one to upgrade."""


class BadMessage(DaskscopeError, ValueError):
    """HTTP 422: a message that does not keep to the format; `place` is a JSON path into it."""

    def __init__(self, message: str, place: str = "$") -> None:
        self.place = place
        super().__init__(message)


class UnknownVersion(BadMessage):
    """The message's version is one this server does not know."""


class TooLarge(BadMessage):
    """HTTP 413: over the size limit, as sent or once decompressed."""


class ServerError(DaskscopeError):
    """The server failed (HTTP 5xx) or answered something unexpected."""
