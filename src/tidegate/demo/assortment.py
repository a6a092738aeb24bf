"""Rows of what the shop sells and where it keeps it. Pure: same rows every time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tidegate.demo.goods import COLORS, KINDS, LANGUAGES, MAKES, MATERIALS, ROLES
from tidegate.demo.people import COUNTRIES
from tidegate.demo.random_source import SPAN_S, RandomSource, day, moment

Row = tuple[Any, ...]

SUPPLIERS = 90
PRODUCTS = 1_200
EMPLOYEES = 140
WAREHOUSES = (
    ("Rotterdam hall", "DE", "Köln", 50.94, 6.96),
    ("Atlantic depot", "US", "Albany", 42.65, -73.75),
    ("Pacific depot", "US", "Portland", 45.52, -122.68),
    ("Almacén Sur", "ES", "Málaga", 36.72, -4.42),
    ("मुख्य गोदाम", "IN", "जयपुर", 26.91, 75.79),
    ("東京倉庫", "JP", "仙台", 38.27, 140.87),
)


def countries() -> Iterator[Row]:
    for c in COUNTRIES:
        yield c.code, c.name, c.native_name, c.language, c.currency, c.tax_percent


def category_tree() -> tuple[list[Row], dict[tuple[str, str], int]]:
    """The categories, parents first, and the id of each (branch, twig)."""
    rows: list[Row] = []
    ids: dict[tuple[str, str], int] = {}
    for kind in KINDS:
        for key, parent, name in (
            ((kind.branch, ""), None, kind.branch),
            ((kind.branch, kind.twig), (kind.branch, ""), kind.twig),
        ):
            if key not in ids:
                ids[key] = len(rows) + 1
                slug = "-".join(part.lower() for part in key if part)
                rows.append((ids[key], ids[parent] if parent else None, name, slug, len(rows) + 1))
    return rows, ids


def suppliers() -> Iterator[Row]:
    dice = RandomSource("suppliers")
    for number in range(1, SUPPLIERS + 1):
        country = dice.pick(COUNTRIES)
        family, trade = dice.pick(country.family), dice.pick(("& Co", "Ltd", "Works", "Studio"))
        phone = f"+{country.dial} 555 {dice.below(10**6):06d}" if dice.chance(0.8) else None
        rating = round(2.5 + 2.5 * dice.roll(), 1) if dice.chance(0.7) else None
        email = f"supplier{number}@example.org"
        since = day(dice.below(SPAN_S // 2))
        yield number, f"{family} {trade}", country.code, email, phone, rating, since


def products(category_ids: dict[tuple[str, str], int]) -> Iterator[Row]:
    dice = RandomSource("products")
    for number in range(1, PRODUCTS + 1):
        kind = KINDS[(number - 1) % len(KINDS)]
        material, make = dice.pick(MATERIALS), dice.pick(MAKES)
        price = kind.price_low + dice.skewed(kind.price_high - kind.price_low, 4)
        price -= price % 10 - 9
        launched = dice.skewed(SPAN_S, 3)
        gone = launched + dice.below(SPAN_S) if dice.chance(0.18) else SPAN_S
        yield (
            number,
            f"{kind.noun[:3].upper()}-{number:05d}",
            f"{material} {kind.noun.lower()} {make}",
            f"{kind.noun} of {material.lower()}, series {make}." if dice.chance(0.85) else None,
            category_ids[kind.branch, kind.twig],
            dice.skewed(SUPPLIERS, 4) + 1,
            price,
            int(price * (0.35 + 0.3 * dice.roll())),
            int(kind.weight_g * (0.7 + 0.6 * dice.roll())) if dice.chance(0.92) else None,
            json.dumps(
                {"color": dice.pick(COLORS), "material": material, "fragile": price % 3 == 0}
            ),
            day(launched),
            day(gone) if gone < SPAN_S else None,
        )


def product_translations() -> Iterator[Row]:
    dice = RandomSource("translations")
    for number in range(1, PRODUCTS + 1):
        kind = KINDS[(number - 1) % len(KINDS)]
        for language in LANGUAGES:
            if dice.chance(0.55):
                yield number, language, f"{kind.names[language]} {dice.pick(MAKES)}"


def price_changes(prices: list[int]) -> Iterator[Row]:
    """Up to four past prices of a product that lead to its price of today."""
    dice = RandomSource("prices")
    row = 0
    for number, price in enumerate(prices, 1):
        old, at = int(price * (0.7 + 0.25 * dice.roll())), 0
        steps = dice.below(5)
        for step in range(steps):
            new = price if step == steps - 1 else old + dice.below(max(price - old, 1))
            at += 1 + dice.below(SPAN_S // 5)
            row += 1
            yield row, number, moment(at), old, new
            old = new


def warehouses() -> Iterator[Row]:
    for number, (name, country, city, latitude, longitude) in enumerate(WAREHOUSES, 1):
        yield number, name, country, city, latitude, longitude, day(number * 40 * 86_400)


def stock() -> Iterator[Row]:
    dice = RandomSource("stock")
    for warehouse in range(1, len(WAREHOUSES) + 1):
        for product in range(1, PRODUCTS + 1):
            if dice.chance(0.7):
                counted = moment(SPAN_S - dice.skewed(SPAN_S)) if dice.chance(0.9) else None
                quantity = dice.skewed(400, 6)
                yield warehouse, product, quantity, dice.pick((5, 10, 20, 40)), counted


def employees() -> Iterator[Row]:
    """One director, a manager for each warehouse, all others below a manager."""
    dice = RandomSource("employees")
    managers = len(WAREHOUSES)
    for number in range(1, EMPLOYEES + 1):
        country = dice.pick(COUNTRIES)
        name = country.full_name(dice.pick(country.given), dice.pick(country.family))
        rank = 0 if number == 1 else 1 if number <= managers + 1 else dice.between(2, 7)
        boss = (None, 1, 2 + dice.below(managers))[min(rank, 2)]
        place = None if rank == 0 else number - 1 if rank == 1 else dice.between(1, managers)
        hired = dice.below(SPAN_S)
        left = hired + dice.below(SPAN_S) if rank > 1 and dice.chance(0.2) else SPAN_S
        salary = (1_450_000, 820_000, 310_000)[min(rank, 2)] + dice.below(90_000)
        yield (
            number, name, ROLES[rank], boss, place, salary, day(hired),
            day(left) if left < SPAN_S else None,
        )  # fmt: skip
