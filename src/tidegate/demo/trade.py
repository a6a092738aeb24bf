"""Rows of who buys from the shop and what became of it. Pure: same rows every time.

Orders come first in time order; everything that hangs on an order (lines, payment, shipment,
return) is made with it, so that sums and dates agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import msgspec

from tidegate.demo.assortment import WAREHOUSES
from tidegate.demo.goods import CARRIERS, ORDER_NOTES, RETURN_REASONS, REVIEWS
from tidegate.demo.people import COUNTRIES, Country
from tidegate.demo.random_source import SPAN_S, RandomSource, day, moment

Row = tuple[Any, ...]

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
    dice = RandomSource("customers")
    people: list[Customer] = []
    rows: list[Row] = []
    homes: list[Row] = []
    for number in range(1, CUSTOMERS + 1):
        country = dice.pick(_BY_SHARE)
        since = int((number - 1) / CUSTOMERS * SPAN_S * 0.97) + dice.below(DAY_S)
        first = len(homes) + 1
        for place in range(1 + dice.chance(0.25) + dice.chance(0.06)):
            homes.append(_address(dice, len(homes) + 1, number, country, place))
        people.append(Customer(country, since, tuple(range(first, len(homes) + 1))))
        rows.append(
            (
                number,
                country.full_name(dice.pick(country.given), dice.pick(country.family)),
                f"customer{number}@example.com",
                f"+{country.dial} 555 {dice.below(10**7):07d}" if dice.chance(0.6) else None,
                country.language,
                country.code,
                f"{dice.between(1942, 2006)}-{dice.between(1, 12):02d}-{dice.between(1, 28):02d}"
                if dice.chance(0.7)
                else None,
                int(dice.chance(0.35)),
                dice.skewed(number - 1, 3) + 1 if number > 1 and dice.chance(0.2) else None,
                moment(since),
            )
        )
    return people, rows, homes


def _address(dice: RandomSource, number: int, customer: int, country: Country, place: int) -> Row:
    return (
        number,
        customer,
        ("home", "work", "gift")[place],
        f"{dice.pick(country.streets)} {dice.between(1, 180)}",
        f"#{dice.between(1, 40)}" if dice.chance(0.3) else None,
        f"{dice.below(10**5):05d}" if dice.chance(0.95) else None,
        dice.pick(country.cities),
        country.code,
    )


def promotions() -> Iterator[Row]:
    dice = RandomSource("promotions")
    for number in range(1, PROMOTIONS + 1):
        start = (number - 1) * (SPAN_S // PROMOTIONS)
        end = day(start + dice.between(7, 60) * DAY_S) if number % 8 else None
        yield number, f"TIDE{number:02d}", dice.pick((5, 10, 15, 20, 25, 40)), day(start), end


class Trade:
    """All orders and what hangs on them; `play` fills the lists below, in order of time."""

    def __init__(self, people: list[Customer], prices: list[int]) -> None:
        self.orders: list[Row] = []
        self.items: list[Row] = []
        self.payments: list[Row] = []
        self.shipments: list[Row] = []
        self.returns: list[Row] = []
        self._people = people
        self._prices = prices
        self._dice = RandomSource("orders")

    def play(self, count: int = ORDERS) -> None:
        for number in range(1, count + 1):
            self._order(number, int(sqrt(number / count) * (SPAN_S - DAY_S)))

    def _order(self, number: int, at: int) -> None:
        dice = self._dice
        at += dice.below(DAY_S)
        known = max(1, min(len(self._people), int(at / (SPAN_S * 0.97) * CUSTOMERS) - 30))
        buyer = dice.skewed(known, 3)
        customer = self._people[buyer]
        basket = self._basket(number)
        goods = sum(quantity * price for *_, quantity, price in basket)
        promotion = dice.between(1, PROMOTIONS) if dice.chance(0.12) else None
        discount = goods * dice.pick((5, 10, 15, 20)) // 100 if promotion else 0
        shipping = 0 if goods > 9_000 else 490
        total = goods - discount + shipping
        status = self._status(at)
        self.items.extend(basket)
        self.orders.append(
            (
                number, f"T{at // DAY_S // 365 + 21}-{number:06d}", buyer + 1,
                dice.pick(customer.addresses), promotion, status, customer.country.currency,
                goods, discount, shipping, total,
                dice.pick(ORDER_NOTES) if dice.chance(0.08) else None, moment(at),
            )
        )  # fmt: skip
        self._pay(number, at, total, status)
        if status in ("shipped", "delivered"):
            self._ship(number, at, status == "delivered", basket)

    def _status(self, at: int) -> str:
        """Old orders are done; only the last weeks hold open ones."""
        if self._dice.chance(0.04):
            return "cancelled"
        if at < SPAN_S - 21 * DAY_S:
            return "delivered"
        return self._dice.pick(("placed", "paid", "shipped", "delivered"))

    def _basket(self, number: int) -> list[Row]:
        dice = self._dice
        lines = 1 + dice.skewed(7, 4)
        chosen = sorted({dice.skewed(len(self._prices), 4) for _ in range(lines)})
        return [
            (number, line, product + 1, 1 + dice.skewed(6, 8), self._prices[product])
            for line, product in enumerate(chosen, 1)
        ]

    def _pay(self, order: int, at: int, total: int, status: str) -> None:
        dice = self._dice
        method = dice.pick(("card", "card", "card", "wallet", "wallet", "transfer", "cash"))
        if dice.chance(0.05):
            self.payments.append(
                (len(self.payments) + 1, order, method, total, "failed", None, None)
            )
        if status == "placed":
            outcome, paid_at = "pending", None
        else:
            outcome = "refunded" if status == "cancelled" else "paid"
            paid_at = moment(at + dice.below(2 * DAY_S))
        reference = None if method == "cash" else f"{dice.below(16**8):08X}"
        row = (len(self.payments) + 1, order, method, total, outcome, reference, paid_at)
        self.payments.append(row)

    def _ship(self, order: int, at: int, delivered: bool, basket: list[Row]) -> None:
        dice = self._dice
        left = at + dice.between(DAY_S, 4 * DAY_S)
        arrived = left + dice.between(DAY_S, 12 * DAY_S)
        tracking = f"TG{dice.below(10**10):010d}" if dice.chance(0.93) else None
        self.shipments.append(
            (
                len(self.shipments) + 1, order, 1 + dice.skewed(len(WAREHOUSES), 3),
                dice.pick(CARRIERS), tracking, moment(left), moment(arrived) if delivered else None,
            )
        )  # fmt: skip
        if delivered and dice.chance(0.09):
            _, line, _, quantity, price = dice.pick(basket)
            back = 1 + dice.below(quantity)
            returned = moment(arrived + dice.between(DAY_S, 30 * DAY_S))
            reason = dice.pick(RETURN_REASONS)
            self.returns.append(
                (len(self.returns) + 1, order, line, back, reason, back * price, returned)
            )


def reviews(people: list[Customer], products: int) -> Iterator[Row]:
    dice = RandomSource("reviews")
    for number in range(1, REVIEW_COUNT + 1):
        buyer = dice.below(len(people))
        customer = people[buyer]
        language = customer.country.language if customer.country.language in REVIEWS else "en"
        happy, unhappy, bodies = REVIEWS[language]
        rating = 5 - dice.skewed(5, 4)
        title = dice.pick(happy if rating > 2 else unhappy)
        body = dice.pick(bodies) if dice.chance(0.6) else None
        written = moment(customer.since + dice.below(max(SPAN_S - customer.since, DAY_S)))
        product = dice.skewed(products, 4) + 1
        yield number, product, buyer + 1, rating, title, body, language, written
