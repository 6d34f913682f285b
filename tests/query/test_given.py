import pyarrow as pa
import pytest

from daskscope_query.given import ask_given
from daskscope_query.tables import CATALOG

ROWS = pa.Table.from_pylist(
    [
        {"account": "acme", "cluster": f"{n:032x}", "cluster_id": n, "name": name}
        for n, name in enumerate(("a", "b"), 1)
    ],
    CATALOG.schema,
)


def test_a_question_about_what_is_at_hand() -> None:
    found = ask_given("closest_clusters", {"catalog": ROWS}, name="b")
    assert found.to_pylist() == [{"cluster": f"{2:032x}", "n_exact": 1}]


def test_what_one_asks_about_no_other_sees() -> None:
    ask_given("closest_clusters", {"catalog": ROWS}, name="b")
    assert ask_given("closest_clusters", {"catalog": ROWS.slice(0, 0)}, name="b").num_rows == 0


def test_a_parameter_that_the_question_has_not_is_refused() -> None:
    with pytest.raises(TypeError, match="no parameter color"):
        ask_given("closest_clusters", {"catalog": ROWS}, color="red")
