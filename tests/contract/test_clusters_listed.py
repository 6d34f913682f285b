from dataclasses import replace

import pytest

from daskscope_lambdas.ports import ClusterPage, Clusters
from tests.contract.beats import BEAT, all_pages


def test_pages_go_from_the_latest_start_on_and_ties_by_number(clusters: Clusters) -> None:
    starts = [5.0, 7.0, 7.0, 1.25, 7.0, 9.0, 5.0]
    for n, started_at in enumerate(starts):
        clusters.enrol("acme", f"u{n}", started_at, 100.0)
        clusters.enrol("other", f"o{n}", started_at, 100.0)
    expected = sorted(((started_at, n + 1) for n, started_at in enumerate(starts)), reverse=True)
    for limit in (1, 2, 3, 7, 8):
        assert [(row.started_at, row.id) for row in all_pages(clusters, "acme", None, limit)] == expected


def test_the_last_page_has_no_cursor(clusters: Clusters) -> None:
    assert clusters.page("acme", None, 2, None) == ClusterPage([], None)
    clusters.enrol("acme", "u1", 1.0, 100.0)
    clusters.enrol("acme", "u2", 2.0, 100.0)
    assert clusters.page("acme", None, 2, None).cursor is None


def test_since_is_about_the_last_message_and_includes_its_moment(clusters: Clusters) -> None:
    for n in range(6):
        clusters.enrol("acme", f"u{n}", float(n), 100.0 + n)
    clusters.beat("acme", "u0", replace(BEAT, received_at=300.0))
    rows = all_pages(clusters, "acme", since=103.0)
    assert [row.uuid for row in rows] == ["u5", "u4", "u3", "u0"]
    assert all_pages(clusters, "acme", since=300.1) == []


def test_a_cluster_enrolled_between_two_pages_moves_no_other(clusters: Clusters) -> None:
    for n in range(4):
        clusters.enrol("acme", f"u{n}", float(n), 100.0)
    first = clusters.page("acme", None, 2, None)
    clusters.enrol("acme", "new", 99.0, 100.0)
    clusters.enrol("acme", "old", 0.5, 100.0)
    second = clusters.page("acme", None, 10, first.cursor)
    assert [row.uuid for row in first.rows] == ["u3", "u2"]
    assert [row.uuid for row in second.rows] == ["u1", "old", "u0"]


@pytest.mark.parametrize(
    "cursor", ["", "x", "1", "2.0", "2.0_", "_1", "2_1", "2.0_-1", "nan_1", "1e999_1", "2.0_1\n", "2.0_" + "9" * 5000]
)
def test_a_foreign_cursor_is_refused(clusters: Clusters, cursor: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        clusters.page("acme", None, 10, cursor)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(clusters: Clusters, limit: int) -> None:
    with pytest.raises(ValueError, match="limit"):
        clusters.page("acme", None, limit, None)


@pytest.mark.parametrize(
    "starts", [[-2.5, -1.0, -0.0, 1e-300, 0.1, 1.0, 1.0000000000000002, 1e9, 1795248000.123, 1e18]]
)
def test_the_list_rounds_no_start(clusters: Clusters, starts: list[float]) -> None:
    for n, started_at in enumerate(starts):
        clusters.enrol("acme", f"u{n}", started_at, 100.0)
    rows = all_pages(clusters, "acme", None, 1)
    assert [row.started_at for row in rows] == sorted(starts, reverse=True)
