"""The rows of the sample shop. Pure: the same rows every time.

First what it sells and where it keeps it, then who buys and what followed from it. Orders come in
time order; the lines, payment, shipment and return of an order are made with it, so that sums and
dates agree.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import sqrt
from typing import Any

import msgspec

from tidegate.demo.data import (
    CARRIERS,
    COLORS,
    COUNTRIES,
    KINDS,
    LANGUAGES,
    MAKES,
    MATERIALS,
    ORDER_NOTES,
    RETURN_REASONS,
    REVIEWS,
    ROLES,
    Country,
)
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
    draw = RandomSource("suppliers")
    for number in range(1, SUPPLIERS + 1):
        country = draw.pick(COUNTRIES)
        family, trade = draw.pick(country.family), draw.pick(("& Co", "Ltd", "Works", "Studio"))
        phone = f"+{country.dial} 555 {draw.below(10**6):06d}" if draw.chance(0.8) else None
        rating = round(2.5 + 2.5 * draw.roll(), 1) if draw.chance(0.7) else None
        email = f"supplier{number}@example.org"
        since = day(draw.below(SPAN_S // 2))
        yield number, f"{family} {trade}", country.code, email, phone, rating, since


def products(category_ids: dict[tuple[str, str], int]) -> Iterator[Row]:
    draw = RandomSource("products")
    for number in range(1, PRODUCTS + 1):
        kind = KINDS[(number - 1) % len(KINDS)]
        material, make = draw.pick(MATERIALS), draw.pick(MAKES)
        price = kind.price_low + draw.skewed(kind.price_high - kind.price_low, 4)
        price -= price % 10 - 9
        launched = draw.skewed(SPAN_S, 3)
        gone = launched + draw.below(SPAN_S) if draw.chance(0.18) else SPAN_S
        yield (
            number,
            f"{kind.noun[:3].upper()}-{number:05d}",
            f"{material} {kind.noun.lower()} {make}",
            f"{kind.noun} of {material.lower()}, series {make}." if draw.chance(0.85) else None,
            category_ids[kind.branch, kind.twig],
            draw.skewed(SUPPLIERS, 4) + 1,
            price,
            int(price * (0.35 + 0.3 * draw.roll())),
            int(kind.weight_g * (0.7 + 0.6 * draw.roll())) if draw.chance(0.92) else None,
            json.dumps(
                {"color": draw.pick(COLORS), "material": material, "fragile": price % 3 == 0}
            ),
            day(launched),
            day(gone) if gone < SPAN_S else None,
        )


def product_translations() -> Iterator[Row]:
    draw = RandomSource("translations")
    for number in range(1, PRODUCTS + 1):
        kind = KINDS[(number - 1) % len(KINDS)]
        for language in LANGUAGES:
            if draw.chance(0.55):
                yield number, language, f"{kind.names[language]} {draw.pick(MAKES)}"


def price_changes(prices: list[int]) -> Iterator[Row]:
    """Up to four past prices of a product that lead to its price of today."""
    draw = RandomSource("prices")
    row = 0
    for number, price in enumerate(prices, 1):
        old, at = int(price * (0.7 + 0.25 * draw.roll())), 0
        steps = draw.below(5)
        for step in range(steps):
            new = price if step == steps - 1 else old + draw.below(max(price - old, 1))
            at += 1 + draw.below(SPAN_S // 5)
            row += 1
            yield row, number, moment(at), old, new
            old = new


def warehouses() -> Iterator[Row]:
    for number, (name, country, city, latitude, longitude) in enumerate(WAREHOUSES, 1):
        yield number, name, country, city, latitude, longitude, day(number * 40 * 86_400)


def stock() -> Iterator[Row]:
    draw = RandomSource("stock")
    for warehouse in range(1, len(WAREHOUSES) + 1):
        for product in range(1, PRODUCTS + 1):
            if draw.chance(0.7):
                counted = moment(SPAN_S - draw.skewed(SPAN_S)) if draw.chance(0.9) else None
                quantity = draw.skewed(400, 6)
                yield warehouse, product, quantity, draw.pick((5, 10, 20, 40)), counted


def employees() -> Iterator[Row]:
    """One director, a manager for each warehouse, all others below a manager."""
    draw = RandomSource("employees")
    managers = len(WAREHOUSES)
    for number in range(1, EMPLOYEES + 1):
        country = draw.pick(COUNTRIES)
        name = country.full_name(draw.pick(country.given), draw.pick(country.family))
        rank = 0 if number == 1 else 1 if number <= managers + 1 else draw.between(2, 7)
        manager = (None, 1, 2 + draw.below(managers))[min(rank, 2)]
        place = None if rank == 0 else number - 1 if rank == 1 else draw.between(1, managers)
        hired = draw.below(SPAN_S)
        left = hired + draw.below(SPAN_S) if rank > 1 and draw.chance(0.2) else SPAN_S
        salary = (1_450_000, 820_000, 310_000)[min(rank, 2)] + draw.below(90_000)
        yield (
            number, name, ROLES[rank], manager, place, salary, day(hired),
            day(left) if left < SPAN_S else None,
        )  # fmt: skip


CUSTOMERS = 8_000
ORDERS = 26_000
REVIEW_COUNT = 9_500
PROMOTIONS = 24
DAY_S = 86_400

_BY_SHARE = tuple(country for country in COUNTRIES for _ in range(country.share))


class Customer(msgspec.Struct, frozen=True):
    """What orders and reviews need to know of a customer; `since` in seconds after opening."""

    country: Country
    since: int
    addresses: tuple[int, ...]


def customers() -> tuple[list[Customer], list[Row], list[Row]]:
    """The customers, their rows, and the rows of their addresses."""
    draw = RandomSource("customers")
    people: list[Customer] = []
    rows: list[Row] = []
    homes: list[Row] = []
    for number in range(1, CUSTOMERS + 1):
        country = draw.pick(_BY_SHARE)
        since = int((number - 1) / CUSTOMERS * SPAN_S * 0.97) + draw.below(DAY_S)
        first = len(homes) + 1
        for place in range(1 + draw.chance(0.25) + draw.chance(0.06)):
            homes.append(_address(draw, len(homes) + 1, number, country, place))
        people.append(Customer(country, since, tuple(range(first, len(homes) + 1))))
        rows.append(
            (
                number,
                country.full_name(draw.pick(country.given), draw.pick(country.family)),
                f"customer{number}@example.com",
                f"+{country.dial} 555 {draw.below(10**7):07d}" if draw.chance(0.6) else None,
                country.language,
                country.code,
                f"{draw.between(1942, 2006)}-{draw.between(1, 12):02d}-{draw.between(1, 28):02d}"
                if draw.chance(0.7)
                else None,
                int(draw.chance(0.35)),
                draw.skewed(number - 1, 3) + 1 if number > 1 and draw.chance(0.2) else None,
                moment(since),
            )
        )
    return people, rows, homes


def _address(draw: RandomSource, number: int, customer: int, country: Country, place: int) -> Row:
    return (
        number,
        customer,
        ("home", "work", "gift")[place],
        f"{draw.pick(country.streets)} {draw.between(1, 180)}",
        f"#{draw.between(1, 40)}" if draw.chance(0.3) else None,
        f"{draw.below(10**5):05d}" if draw.chance(0.95) else None,
        draw.pick(country.cities),
        country.code,
    )


def promotions() -> Iterator[Row]:
    draw = RandomSource("promotions")
    for number in range(1, PROMOTIONS + 1):
        start = (number - 1) * (SPAN_S // PROMOTIONS)
        end = day(start + draw.between(7, 60) * DAY_S) if number % 8 else None
        yield number, f"TIDE{number:02d}", draw.pick((5, 10, 15, 20, 25, 40)), day(start), end


class Sales:
    """All orders and what hangs on them; `play` fills the lists below, in order of time."""

    def __init__(self, people: list[Customer], prices: list[int]) -> None:
        self.orders: list[Row] = []
        self.items: list[Row] = []
        self.payments: list[Row] = []
        self.shipments: list[Row] = []
        self.returns: list[Row] = []
        self._people = people
        self._prices = prices
        self._random = RandomSource("orders")

    def generate(self) -> None:
        for number in range(1, ORDERS + 1):
            self._order(number, int(sqrt(number / ORDERS) * (SPAN_S - DAY_S)))

    def _order(self, number: int, at: int) -> None:
        draw = self._random
        at += draw.below(DAY_S)
        known = max(1, min(len(self._people), int(at / (SPAN_S * 0.97) * CUSTOMERS) - 30))
        buyer = draw.skewed(known, 3)
        customer = self._people[buyer]
        basket = self._basket(number)
        goods = sum(quantity * price for *_, quantity, price in basket)
        promotion = draw.between(1, PROMOTIONS) if draw.chance(0.12) else None
        discount = goods * draw.pick((5, 10, 15, 20)) // 100 if promotion else 0
        shipping = 0 if goods > 9_000 else 490
        total = goods - discount + shipping
        status = self._status(at)
        self.items.extend(basket)
        self.orders.append(
            (
                number, f"T{at // DAY_S // 365 + 21}-{number:06d}", buyer + 1,
                draw.pick(customer.addresses), promotion, status, customer.country.currency,
                goods, discount, shipping, total,
                draw.pick(ORDER_NOTES) if draw.chance(0.08) else None, moment(at),
            )
        )  # fmt: skip
        self._pay(number, at, total, status)
        if status in ("shipped", "delivered"):
            self._ship(number, at, status == "delivered", basket)

    def _status(self, at: int) -> str:
        """Old orders are done; only the last weeks hold open ones."""
        if self._random.chance(0.04):
            return "cancelled"
        if at < SPAN_S - 21 * DAY_S:
            return "delivered"
        return self._random.pick(("placed", "paid", "shipped", "delivered"))

    def _basket(self, number: int) -> list[Row]:
        draw = self._random
        lines = 1 + draw.skewed(7, 4)
        chosen = sorted({draw.skewed(len(self._prices), 4) for _ in range(lines)})
        return [
            (number, line, product + 1, 1 + draw.skewed(6, 8), self._prices[product])
            for line, product in enumerate(chosen, 1)
        ]

    def _pay(self, order: int, at: int, total: int, status: str) -> None:
        draw = self._random
        method = draw.pick(("card", "card", "card", "wallet", "wallet", "transfer", "cash"))
        if draw.chance(0.05):
            self.payments.append(
                (len(self.payments) + 1, order, method, total, "failed", None, None)
            )
        if status == "placed":
            outcome, paid_at = "pending", None
        else:
            outcome = "refunded" if status == "cancelled" else "paid"
            paid_at = moment(at + draw.below(2 * DAY_S))
        reference = None if method == "cash" else f"{draw.below(16**8):08X}"
        row = (len(self.payments) + 1, order, method, total, outcome, reference, paid_at)
        self.payments.append(row)

    def _ship(self, order: int, at: int, delivered: bool, basket: list[Row]) -> None:
        draw = self._random
        left = at + draw.between(DAY_S, 4 * DAY_S)
        arrived = left + draw.between(DAY_S, 12 * DAY_S)
        tracking = f"TG{draw.below(10**10):010d}" if draw.chance(0.93) else None
        self.shipments.append(
            (
                len(self.shipments) + 1, order, 1 + draw.skewed(len(WAREHOUSES), 3),
                draw.pick(CARRIERS), tracking, moment(left), moment(arrived) if delivered else None,
            )
        )  # fmt: skip
        if delivered and draw.chance(0.09):
            _, line, _, quantity, price = draw.pick(basket)
            back = 1 + draw.below(quantity)
            returned = moment(arrived + draw.between(DAY_S, 30 * DAY_S))
            reason = draw.pick(RETURN_REASONS)
            self.returns.append(
                (len(self.returns) + 1, order, line, back, reason, back * price, returned)
            )


def reviews(people: list[Customer], products: int) -> Iterator[Row]:
    draw = RandomSource("reviews")
    for number in range(1, REVIEW_COUNT + 1):
        buyer = draw.below(len(people))
        customer = people[buyer]
        language = customer.country.language if customer.country.language in REVIEWS else "en"
        happy, unhappy, bodies = REVIEWS[language]
        rating = 5 - draw.skewed(5, 4)
        title = draw.pick(happy if rating > 2 else unhappy)
        body = draw.pick(bodies) if draw.chance(0.6) else None
        written = moment(customer.since + draw.below(max(SPAN_S - customer.since, DAY_S)))
        product = draw.skewed(products, 4) + 1
        yield number, product, buyer + 1, rating, title, body, language, written
