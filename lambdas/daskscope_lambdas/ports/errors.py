"""The errors that a port may raise."""

from __future__ import annotations


class StoreError(Exception):
    """The root of what a port may raise."""


class Missing(StoreError):
    """What was asked for is not there."""


class Taken(StoreError):
    """A write-once key exists already."""


class Gone(StoreError):
    """It was deleted, and is not to come again."""


class Conflict(StoreError):
    """The state is not the one that the change expected."""


class ReadOnly(StoreError):
    """Nothing can be changed here."""


class Full(StoreError):
    """There is no room for more."""


class NotAdmitted(StoreError):
    """An address that was given to nobody, or whose time is over; the text says which."""
