"""Which price answers for a machine, and what a file of prices may say."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from daskscope.agent import hardware
from daskscope.errors import SettingsError
from daskscope_lambdas.service import price_file
from daskscope_lambdas.service.price_file import merged, packaged, read_override, read_tables
from daskscope_lambdas.service.prices import Prices, PriceTable

NOW = datetime(2026, 11, 21, tzinfo=UTC).timestamp()
TWO = b"""
tables:
  - from: 2026-01-01
    source: a list
    home: over-here-1
    core_hour: 1
    gib_hour: 0.1
    spot_factor: 0.5
    regions: {over-here-1: {families: {m5: 2}, instance_types: {g5.xlarge: 9}}, over-there-1: {families: {m5: 3}}}
  - {from: 2026-06-01, source: another, home: over-here-1, core_hour: 2, gib_hour: 0, spot_factor: 1,
     regions: {over-here-1: {}}}
"""


def own(text: str, base: Prices | None = None) -> Prices:
    return merged(base or packaged(), read_override(text.encode(), "account acme", "mine.yaml"))


def today(prices: Prices) -> PriceTable:
    return prices.at(NOW)


def per_hour(prices: Prices, instance_type: str, region: str | None, lifecycle: str | None) -> tuple[Any, str, str]:
    quote = today(prices).quote(instance_type, region, lifecycle)
    assert quote is not None
    return pytest.approx(quote.per_hour), quote.whose, quote.why


def test_sizes_of_a_family_cost_in_proportion():
    table = today(packaged())
    found = {size: table.quote(f"m6i.{size}", "us-east-1", "on-demand") for size in ("large", "xlarge", "32xlarge")}
    assert {size: quote and quote.per_hour for size, quote in found.items()} == pytest.approx(
        {"large": 0.096, "xlarge": 0.192, "32xlarge": 6.144}
    )
    small = table.quote("t3.nano", "us-east-1", "on-demand")
    assert small is not None
    assert small.per_hour == pytest.approx(0.0052)
    for odd in (
        "m6i.metal",
        "m6i.huge",
        "m6i",
        "m6i.",
        "",
        ".large",
        "m6i.xxlarge",
        "m6i.²xlarge",
        "x9.large",
        "m6i.0xlarge",
        "m6i.01xlarge",
        "m6i.1000xlarge",
        f"m6i.{'9' * 308}xlarge",
        f"m6i.{'9' * 5000}xlarge",
    ):
        assert table.quote(odd, "us-east-1", "on-demand") is None, odd


def test_the_packaged_core_and_gib_are_what_its_own_machines_say():
    table = today(packaged())
    m6i, r6i = (table.quote(f"{family}.large", "us-east-1", "on-demand") for family in ("m6i", "r6i"))
    assert m6i is not None
    assert r6i is not None
    assert table.gib_hour == pytest.approx((r6i.per_hour - m6i.per_hour) / 8)
    assert 2 * table.core_hour + 8 * table.gib_hour == pytest.approx(m6i.per_hour)
    assert table.thread_hour == pytest.approx(m6i.per_hour / 2)


def test_what_was_assumed_is_said():
    listed = "list prices of 2026-01"
    assert per_hour(packaged(), "m5.large", "us-east-1", "on-demand") == (0.096, listed, "")
    assert per_hour(packaged(), "m5.large", "eu-west-1", "on-demand") == (
        0.096, listed, "eu-west-1 priced as us-east-1",
    )  # fmt: skip
    assert per_hour(packaged(), "m5.large", None, None) == (
        0.096, listed, "an untold region priced as us-east-1, untold lifecycle priced as on demand",
    )  # fmt: skip
    assert per_hour(packaged(), "m5.large", "us-east-1", "spot") == (
        0.096 * 0.4, listed, "spot taken as 0.4 of on demand",
    )  # fmt: skip
    assert per_hour(packaged(), "p5.48xlarge", "us-east-1", "capacity-block")[2] == "capacity-block priced as on demand"


def test_the_table_of_the_day_counts_and_before_the_first_that_one():
    prices = read_tables(TWO, "two.yaml")

    def core_hour(day: str) -> float:
        return prices.at(datetime.fromisoformat(f"{day}T00:00Z").timestamp()).core_hour

    days = ("2020-01-01", "2026-05-31", "2026-06-01", "2030-01-01")
    assert [core_hour(day) for day in days] == [1, 1, 2, 2]
    assert [table.since for table in prices.tables] == [date(2026, 1, 1), date(2026, 6, 1)]
    first = prices.at(0.0)
    there, gpu = (
        first.quote("m5.xlarge", "over-there-1", "on-demand"),
        first.quote("g5.xlarge", "over-there-1", "on-demand"),
    )
    assert (there and there.per_hour, gpu and gpu.per_hour) == (6, 9)


def test_an_own_price_counts_in_whatever_region_and_on_whatever_day():
    prices = own("instance_types: {m6i.large: 0.05, my.box: 1}\nspot_factor: 0.3")
    assert per_hour(prices, "m6i.large", "mars-1", "on-demand") == (0.05, "prices of account acme", "")
    assert per_hour(prices, "my.box", None, "spot") == (0.3, "prices of account acme", "")
    assert per_hour(prices, "m6i.xlarge", "us-east-1", "on-demand") == (0.192, "list prices of 2026-01", "")
    assert prices.sources[-1] == "account acme: spot_factor 0.3, 2 instance types"
    assert prices.digest != packaged().digest
    later = own("core_hour: 7", read_tables(TWO, "two.yaml"))
    assert [later.at(0.0).core_hour, today(later).core_hour] == [7, 7]


def test_an_own_region_stands_beside_the_packaged_ones_and_an_own_family_is_meant_whole():
    prices = own("regions: {us-east-1: {families: {g5: 1}}, eu-west-1: {instance_types: {m5.large: 0.107}}}")
    assert per_hour(prices, "g5.xlarge", "us-east-1", "on-demand")[0] == 2
    assert per_hour(prices, "m5.large", "eu-west-1", "on-demand")[::2] == (0.107, "")
    assert per_hour(prices, "m5.large", "us-east-1", "on-demand")[0] == 0.096


def test_memory_is_within_an_own_core_hour_unless_it_has_its_price():
    assert (today(own("core_hour: 0.02")).gib_hour, today(own("core_hour: 0.02")).own) == (0, {"core_hour", "gib_hour"})
    assert today(own("{core_hour: 0.02, gib_hour: 0.001}")).gib_hour == 0.001
    kept = today(own("gib_hour: 0.001"))
    assert (kept.core_hour, kept.gib_hour, kept.own) == (today(packaged()).core_hour, 0.001, {"gib_hour"})


def test_in_another_currency_no_packaged_price_counts():
    prices = own("{currency: EUR, core_hour: 0.02, instance_types: {m5.large: 0.1}}")
    assert (today(prices).currency, prices.sources) == (
        "EUR",
        ("account acme: in EUR, core_hour 0.02, 1 instance types",),
    )
    assert today(prices).quote("m6i.large", "us-east-1", "on-demand") is None
    assert per_hour(prices, "m5.large", "us-east-1", "on-demand") == (0.1, "prices of account acme", "")


def test_an_account_stands_over_its_installation():
    both = merged(own("{core_hour: 1, spot_factor: 0.9}"), read_override(b"core_hour: 2", "account b", "b.yaml"))
    assert (today(both).core_hour, today(both).spot_factor) == (2, 0.9)
    assert today(both).own == {"core_hour", "gib_hour", "spot_factor"}
    assert len(both.sources) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "mine.yaml: the file is None; allowed: a mapping of currency, core_hour, "),
        ("{}", "mine.yaml: the file is {}; allowed: at least one of currency, core_hour, "),
        ("cpu_hour: 1", "mine.yaml: the file is 'cpu_hour'; allowed: currency, core_hour, gib_hour, "),
        ("core_hour: -1", "mine.yaml: core_hour is -1; allowed: a price per hour, a number from 0 on."),
        ("core_hour: yes", "mine.yaml: core_hour is True; "),
        ("gib_hour: .nan", "mine.yaml: gib_hour is nan; "),
        ("gib_hour: .inf", "mine.yaml: gib_hour is inf; "),
        ("gib_hour: cheap", "mine.yaml: gib_hour is 'cheap'; "),
        ("spot_factor: 2", "mine.yaml: spot_factor is 2; allowed: a factor from 0 to 1."),
        ("instance_types: {m5.large: {}}", "mine.yaml: instance_types.m5.large is {}; "),
        ("instance_types: [m5.large]", "mine.yaml: instance_types is ['m5.large']; allowed: a mapping."),
        ("instance_types: {5: 1}", "mine.yaml: instance_types is 5; allowed: an instance type as EC2 names it"),
        ('instance_types: {"a\\e[2J": 1}', "allowed: an instance type as EC2 names it, like m6i.large."),
        ("instance_types: {m6i.Large: 1}", "instance_types is 'm6i.Large'; allowed: an instance type as EC2 names it"),
        ("regions: {eu: {}}", "regions is 'eu'; allowed: a region as EC2 names it, like eu-central-1."),
        ("regions: {eu-west-1: {families: {m5.large: 1}}}", "families is 'm5.large'; allowed: a family"),
        ("core_hour: 1:30", "core_hour is '1:30'; "),
        ("core_hour: 0x10", "core_hour is '0x10'; "),
        ("core_hour: 010", "core_hour is '010'; "),
        ("core_hour: 1_0", "core_hour is '1_0'; "),
        ("core_hour: !!int '1:30'", "a tag stands there"),
        ("core_hour: 1e999", "core_hour is inf; "),
        ("? [core_hour]\n: 1", "a name that is no text"),
        ("instance_types: {<<: {m5.large: 1}}", "instance_types is '<<'; "),
        ("a: &a [x, x]\nb: [*a, *a]", "an alias stands there in"),
        ("regions: {eu-west-1: {families: {m5: -2}}}", "mine.yaml: regions.eu-west-1.families.m5 is -2; "),
        ("regions: {eu-west-1: {m5: 2}}", "mine.yaml: regions.eu-west-1 is 'm5'; allowed: families, instance_types."),
        ("currency: EUR", "mine.yaml: core_hour is None; allowed: a price in EUR"),
        ("{currency: euro, core_hour: 1}", "mine.yaml: currency is 'euro'; allowed: three capitals, like USD or EUR."),
        ("core_hour: 1\ncore_hour: 2", "core_hour stands there twice"),
        ("core_hour: [", "allowed: YAML."),
        ("a: !!python/object/apply:os.getcwd []", "allowed: YAML."),
        ("x" * (1 << 18) + "y", "mine.yaml: the file is '262,145 bytes'; allowed: at most 262,144 bytes."),
    ],
)  # fmt: skip
def test_an_odd_file_is_an_error_that_names_the_place(text: str, said: str):
    with pytest.raises(SettingsError) as raised:
        own(text)
    assert said in str(raised.value)
    assert len(str(raised.value)) < 500


def test_a_number_is_what_a_person_reads():
    assert today(own("core_hour: 1e-2")).core_hour == 0.01
    assert today(own("core_hour: .5")).core_hour == 0.5
    assert today(own("core_hour: 1.5E+1")).core_hour == 15


def test_an_error_shows_the_beginning_of_what_is_wrong():
    with pytest.raises(SettingsError, match=r"core_hour is \['a+\.\.\.; allowed: a price") as raised:
        own(f"core_hour: [{'a' * 100_000}]")
    assert len(str(raised.value)) < 400


def test_many_names_take_no_time_that_grows_with_their_square():
    names = ", ".join(f"m{n}.large: 1" for n in range(15_000))
    assert len(today(own(f"instance_types: {{{names}}}")).anywhere) == 15_000


def test_names_are_those_that_the_agent_tells():
    agents = {name: pattern.pattern.replace(r"\d", "[0-9]") for name, (_, pattern) in hardware._ANSWERS.items()}
    assert (price_file._TYPES.pattern.pattern, price_file._REGIONS.pattern.pattern) == (
        agents["instance_type"], agents["region"],
    )  # fmt: skip


def test_an_account_that_names_no_currency_means_its_installations():
    euros = own("{currency: EUR, core_hour: 0.02, instance_types: {m5.large: 0.1}}")
    both = own("spot_factor: 0.3", euros)
    assert (today(both).currency, today(both).core_hour, today(both).spot_factor) == ("EUR", 0.02, 0.3)
    assert per_hour(both, "m5.large", None, "on-demand")[0] == 0.1
    assert both.sources == (*euros.sources, "account acme: spot_factor 0.3")
    same = own("{currency: EUR, gib_hour: 0.5}", euros)
    assert (today(same).core_hour, today(same).gib_hour) == (0.02, 0.5)
    with pytest.raises(SettingsError, match=r"core_hour is None; allowed: a price in USD: .* are in EUR"):
        own("{currency: USD, gib_hour: 0.5}", euros)
    assert today(own("{currency: USD, core_hour: 1}", euros)).currency == "USD"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("from: 2026-06-01", "from: 2026-01-01", "tables is ['2026-01-01', '2026-01-01']; allowed: tables in"),
        ("from: 2026-01-01", "from: 2026-01-01 10:00:00", "tables.0.from is datetime"),
        ("from: 2026-01-01", "from: January", "tables.0.from is 'January'; allowed: a day, like 2026-11-01."),
        ("source: a list", "source: ''", "tables.0.source is ''"),
        ("    source: a list\n", "", "tables.0.source is None; allowed: a value: it may not be missing."),
        ("home: over-here-1\n", "home: mars\n", "home is 'mars'; allowed: one of the regions, over-here-1, over-there"),
        ("tables:", "prices:", "the file is 'prices'; allowed: tables."),
        (TWO.decode(), "tables: []", "tables is []; allowed: a list of tables."),
    ],
)  # fmt: skip
def test_an_odd_table_is_an_error_that_names_the_place(old: str, new: str, said: str):
    text = TWO.decode()
    assert old in text
    with pytest.raises(SettingsError) as raised:
        read_tables(text.replace(old, new, 1).encode(), "two.yaml")
    assert said in str(raised.value)
