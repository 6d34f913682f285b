"""Clusters, the registry, on DynamoDB."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

from daskscope_lambdas.adapters.arguments import check_limit
from daskscope_lambdas.adapters.aws import rows
from daskscope_lambdas.adapters.aws.again import tries
from daskscope_lambdas.adapters.aws.order import place, placed
from daskscope_lambdas.adapters.aws.table import Item, RefusedError, Table, Value
from daskscope_lambdas.adapters.cursors import HIGHEST, cursor_at, position
from daskscope_lambdas.ports import Beat, ClusterPage, ClusterRow, Conflict, Gone, Heard, Missing, StoreError, Taken
from daskscope_lambdas.registry import KEY, LISTED_AT, LISTED_IN, LISTING, LIVES_IN, LIVING

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

_TOGETHER = 100
"""Rows that `living` and `changed` hold at a time."""
_UNDER_WAY = 100
"""So many numbers below the highest one may have been given out already when their rows are not there yet."""
_ACCOUNTS = "accounts"
_FIRST = "~"
"""Above every place in a list."""

_NEWER = "(#boot < :boot OR (#boot = :boot AND #seq < :seq))"


class DynamoClusters:
    """An item per cluster, written by its messages alone; see registry.py for what stands beside it."""

    def __init__(self, client: Callable[[], DynamoDBClient], table: str) -> None:
        self._table = Table(client, table)
        self._owners: Mapping[str, str] = {}
        """Accounts of the clusters that lived when `changed` was last asked, by UUID."""

    def enrol(self, account: str, uuid: str, started_at: float, received_at: float) -> ClusterRow:
        row = self._known_or_deleted(uuid)
        if row is None:
            row = self._enrol(account, uuid, started_at, received_at)
        if row.account != account:
            raise Taken(f"Cluster {uuid} belongs to another account than {account}.")
        return row

    def _enrol(self, account: str, uuid: str, started_at: float, received_at: float) -> ClusterRow:
        """The row made here, or by whoever was faster: then the number taken here is a gap."""
        # What stands in an index is the same each time, so that it is written once.
        listed: dict[str, Value] = {LISTED_IN: _ACCOUNTS, LISTED_AT: account}
        number = self._table.count_up(f"account/{account}", "last", listed)
        made = ClusterRow(
            account=account, id=number, uuid=uuid, started_at=started_at, first_received_at=received_at,
            last_received_at=received_at,
        )  # fmt: skip
        for _ in tries():
            try:
                self._table.put_all_new(rows.new_item(made), {KEY: rows.number_key(account, number), "uuid": uuid})
            except Conflict:
                # Without a row the other is still at it, and may yet fail.
                if row := self._known_or_deleted(uuid):
                    return row
            else:
                return made
        raise StoreError(f"Cluster {uuid} could not be enrolled: others tried at the same time.")

    def beat(self, account: str, uuid: str, beat: Beat) -> Heard:
        values, change = rows.change(beat)
        values |= {"account": account, "received_at": beat.received_at}
        # Nearly always the first. What was received before the row was last heard of leaves that moment as it is.
        ways = (("SET #last_received_at = :received_at, ", "<="), ("SET ", ">"))
        for _ in tries():
            for moment, compared in ways:
                condition = f"#account = :account AND {_NEWER} AND #last_received_at {compared} :received_at"
                try:
                    written = self._table.update(rows.key(uuid), moment + change, values, condition)
                except RefusedError as refused:
                    item = refused.item
                else:
                    return Heard(True, rows.close_asked_at(written))
                if item is None or item.get("account", account) != account:
                    raise Missing(f"No cluster {uuid} in account {account}.")
                if rows.is_deleted(item):
                    raise Gone(f"Cluster {uuid} was deleted.")
                if (item["boot"], int(item["seq"])) >= (beat.boot, beat.seq):
                    if self._add_older(account, uuid, beat, item):
                        return Heard(False, rows.close_asked_at(item))
                    break
        raise StoreError(f"The row of cluster {uuid} changed whenever it was to be written.")

    def _add_older(self, account: str, uuid: str, beat: Beat, item: Item) -> bool:
        """What the row is to take of a message older than itself; False if the row has changed since it was read."""
        found = rows.change_of_older(beat, item)
        if found is None:
            return True
        values, change, condition = found
        try:
            self._table.update(
                rows.key(uuid), change, values | {"account": account}, f"#account = :account AND {condition}"
            )
        except RefusedError:
            return False
        return True

    def ask_close(self, account: str, uuid: str, by: str, reason: str | None, at: float) -> bool:
        values, change = rows.close_asked(by, reason, at)
        values |= {"account": account, "running": "running"}
        try:
            self._table.update(rows.key(uuid), change, values, "#account = :account AND #phase = :running")
        except RefusedError as refused:
            if refused.item is None or refused.item.get("account") != account:
                raise Missing(f"No cluster {uuid} in account {account}.") from refused
            return False
        return True

    def get(self, account: str, id: int) -> ClusterRow:
        item = self._table.get(rows.number_key(account, id)) if 0 < id <= HIGHEST else None
        if item is None:
            raise Missing(f"No cluster {id} in account {account}.")
        return self.find(account, item["uuid"])

    def find(self, account: str, uuid: str) -> ClusterRow:
        row = self._known(uuid)
        if row is None or row.account != account:
            raise Missing(f"No cluster {uuid} in account {account}.")
        return row

    def _known(self, uuid: str) -> ClusterRow | None:
        item = self._table.get(rows.key(uuid))
        return rows.row(item) if item and not rows.is_deleted(item) else None

    def _known_or_deleted(self, uuid: str) -> ClusterRow | None:
        """Raises Gone."""
        item = self._table.get(rows.key(uuid))
        if item and rows.is_deleted(item):
            raise Gone(f"Cluster {uuid} was deleted.")
        return rows.row(item) if item else None

    def page(self, account: str, since: float | None, limit: int, cursor: str | None) -> ClusterPage:
        check_limit(limit)
        before = _FIRST if cursor is None else place(*position(cursor))
        entries = self._table.query(
            LISTING,
            f"#{LISTED_IN} = :account AND #{LISTED_AT} < :before",
            {"account": rows.list_of(account), "before": before},
            backwards=True,
            limit=limit + 1,
        )
        ahead = list(islice(entries, limit + 1))
        items = self._table.get_many([entry[KEY] for entry in ahead[:limit]])
        # The index is a moment late, the items are not.
        listed = [rows.row(item) for item in items if not rows.is_deleted(item)]
        return ClusterPage(
            [row for row in listed if since is None or row.last_received_at >= since],
            cursor_at(*placed(ahead[limit - 1][LISTED_AT])) if len(ahead) > limit else None,
        )

    def get_many(self, account: str, uuids: Sequence[str]) -> list[ClusterRow]:
        items = self._table.get_many([rows.key(uuid) for uuid in uuids])
        return [rows.row(item) for item in items if item.get("account") == account]

    def changed(
        self, account: str, since_at: float, last_id: int = 0, running: Collection[str] = ()
    ) -> Iterator[ClusterRow]:
        if last_id < 1:
            return (row for row in self._all(account) if row.last_received_at >= since_at)
        found = self._suspects(account, last_id, running)
        return (row for row in found if row.last_received_at >= since_at or row.id > last_id)

    def _all(self, account: str) -> Iterator[ClusterRow]:
        cursor = None
        while True:
            page = self.page(account, None, _TOGETHER, cursor)
            yield from page.rows
            cursor = page.cursor
            if cursor is None:
                return

    def _suspects(self, account: str, last_id: int, running: Collection[str]) -> Iterator[ClusterRow]:
        """No index tells who was heard of when, for each message would write it: those that may have been.

        Nor does one tell whose the living are. An owner never changes while a cluster lives, so a process reads those
        of other accounts once.
        """
        entries = self._table.query(LIVING, f"#{LIVES_IN} = :life", {"life": rows.LIFE})
        living = [rows.uuid_of(entry) for entry in entries]
        before, owners, told = self._owners, dict[str, str](), set[str]()
        owners.update((uuid, before[uuid]) for uuid in living if uuid in before)
        ours = (uuid for uuid in living if owners.get(uuid, account) == account)
        keys = chain(ours, running, self._enrolled_after(account, last_id - _UNDER_WAY))
        while some := list(islice(keys, _TOGETHER)):
            new = sorted(set(some) - told)
            told.update(new)
            items = self._table.get_many([rows.key(uuid) for uuid in new])
            owners.update((rows.uuid_of(item), item["account"]) for item in items if LIVES_IN in item)
            yield from (rows.row(item) for item in items if item.get("account") == account)
        self._owners = owners

    def _enrolled_after(self, account: str, last_id: int) -> Iterator[str]:
        """UUIDs of those with higher numbers."""
        counted = self._table.get(f"account/{account}")
        newest = int(counted["last"]) if counted else 0
        for first in range(max(last_id, 0) + 1, newest + 1, _TOGETHER):
            numbers = range(first, min(first + _TOGETHER, newest + 1))
            yield from (item["uuid"] for item in self._table.get_many([rows.number_key(account, n) for n in numbers]))

    def accounts(self) -> set[str]:
        entries = self._table.query(LISTING, f"#{LISTED_IN} = :accounts", {"accounts": _ACCOUNTS})
        return {entry[LISTED_AT] for entry in entries}

    def living(self) -> Iterator[ClusterRow]:
        entries = self._table.query(LIVING, f"#{LIVES_IN} = :life", {"life": rows.LIFE})
        while some := [entry[KEY] for entry in islice(entries, _TOGETHER)]:
            # The index is a moment late, the items are not.
            yield from (rows.row(item) for item in self._table.get_many(some) if LIVES_IN in item)

    def retire(self, row: ClusterRow) -> bool:
        try:
            self._table.update(
                rows.key(row.uuid),
                f"REMOVE #{LIVES_IN}",
                {"account": row.account, "boot": row.boot, "seq": row.seq},
                f"#account = :account AND #boot = :boot AND #seq = :seq AND attribute_exists(#{LIVES_IN})",
            )
        except RefusedError as refused:
            if refused.item is None or refused.item.get("account") != row.account:
                raise Missing(f"No cluster {row.uuid} in account {row.account}.") from refused
            return False
        return True

    def drop(self, row: ClusterRow) -> bool:
        # The row first, and only as it was read: a number that leads to no row leads nowhere.
        try:
            self._table.delete_if(
                rows.key(row.uuid),
                {"account": row.account, "boot": row.boot, "seq": row.seq, "at": row.last_received_at},
                "#account = :account AND #boot = :boot AND #seq = :seq AND #last_received_at = :at",
            )
        except Conflict:
            item = self._table.get(rows.key(row.uuid))
            if item is not None and not rows.is_deleted(item):
                return False
        self._table.delete(rows.number_key(row.account, row.id))
        return True

    def forget(self, account: str, uuid: str, at: float) -> None:
        item = self._table.get(rows.key(uuid))
        grave = rows.grave(account, uuid, at)
        if item is None or (item["owner"] != grave["owner"] if rows.is_deleted(item) else item["account"] != account):
            raise Missing(f"No cluster {uuid} in account {account}.")
        if rows.is_deleted(item):
            return
        # The number first: whoever comes after a run that died here still finds it in the row.
        self._table.delete(rows.number_key(account, int(item["id"])))
        self._table.put(grave)

    def deleted(self, uuids: Iterable[str]) -> set[str]:
        items = self._table.get_many([rows.key(uuid) for uuid in sorted(set(uuids))])
        return {rows.uuid_of(item) for item in items if rows.is_deleted(item)}

    def forget_numbers(self, account: str) -> None:
        if not next(self._table.query(LISTING, f"#{LISTED_IN} = :account", {"account": rows.list_of(account)}), None):
            self._table.delete(f"account/{account}")
