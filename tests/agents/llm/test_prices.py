"""Prices: the table's lines, and dollars worked out by hand."""

from datetime import date

import pytest

from agents.llm.prices import Price, price_of, price_table
from agents.llm.reply import Usage

DAY = date(2026, 11, 30)


def test_every_line_has_a_source_and_a_day() -> None:
    assert len(price_table()) >= 8
    for line in price_table():
        assert line.source.startswith("https://")
        assert date(2024, 1, 1) < line.since <= DAY
        assert line.cached is None or line.cached < line.input < line.output
    assert len({(line.model, line.since) for line in price_table()}) == len(price_table())


def test_known_prices() -> None:
    """As the makers' model pages state them."""
    assert price_of("gpt-5-mini", DAY) == Price(input=0.25, cached=0.025, output=2.0)
    assert price_of("gpt-5-nano", DAY) == Price(input=0.05, cached=0.005, output=0.4)
    flash = price_of("gemini-2.5-flash", DAY)
    assert flash is not None and (flash.input, flash.output) == (0.3, 2.5)


def test_a_snapshot_costs_what_its_model_costs() -> None:
    assert price_of("gpt-5-mini-2025-08-07", DAY) == price_of("gpt-5-mini", DAY)


@pytest.mark.parametrize("name", ["Qwen/Qwen3.5-35B-A3B", "gpt-5-mini-fast", "gpt-5-mini-2025", "", "gpt"])
def test_a_price_that_is_not_in_the_table_is_unknown(name: str) -> None:
    assert price_of(name, DAY) is None


def test_a_price_is_unknown_before_its_day() -> None:
    assert price_of("gpt-5-mini", date(2025, 8, 6)) is None


def test_dollars() -> None:
    """(1000 - 300) * 1.25 + 300 * 0.125 + 500 * 10, by hand, over a million."""
    price = Price(input=1.25, cached=0.125, output=10.0)
    assert price.dollars(Usage(1000, 500, 200, 300)) == pytest.approx(0.0059125)
    assert price.dollars(Usage(1000, 500)) == pytest.approx(0.00625)
    assert price.dollars(Usage(1000, None)) is None
    assert price.dollars(Usage()) is None
    assert Price(input=1.0, output=2.0).dollars(Usage(1000, 0, 0, 1000)) == pytest.approx(0.001)
    assert price.bound(1000, 500) == pytest.approx(0.00625)
