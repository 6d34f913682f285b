"""A message as the registry is told it, and what the tests of clusters ask it."""

from daskscope_lambdas.ports import Beat, ClusterRow, Clusters

BEAT = Beat(
    boot="b1",
    seq=0,
    received_at=110.0,
    made_at=109.5,
    next_s=10.0,
    phase="running",
    reason=None,
    identity={"name": "x", "tags": {"ä": "€"}, "dashboard": None},
    totals={"n_workers": 2, "action_us": {"compute": 2**53}},
    lost={},
)


def all_pages(clusters: Clusters, account: str, since: float | None = None, limit: int = 2) -> list[ClusterRow]:
    rows: list[ClusterRow] = []
    cursor: str | None = None
    for _ in range(1000):
        page = clusters.page(account, since, limit, cursor)
        assert len(page.rows) <= limit
        rows += page.rows
        cursor = page.cursor
        if cursor is None:
            return rows
    raise AssertionError("the list has no end")


def alive(clusters: Clusters) -> list[str]:
    return sorted(row.uuid for row in clusters.living())
