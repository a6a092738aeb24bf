"""What an operator sets on a saved source comes back as it was."""

from tidegate.sources import Mask, RowFilter, Source
from tidegate.store.sqlite import SqliteStore


def test_a_saved_source_keeps_its_masks_and_filters(tmp_path):
    store = SqliteStore(tmp_path / "state.db")
    source = Source(
        *("s1", "shop", "sqlite:///shop.db", "sqlite", "sqlite"),
        tags=("prod",),
        destructive_scope="fullAccess",
        masks=(Mask("customers.email", "hash", except_tokens=("billing",)),),
        filters=(RowFilter("orders", "owner = {actor.name}", tag="prod"),),
    )
    store.add_source(source)
    store.add_source(Source("s2", "plain", "sqlite:///plain.db", "sqlite", "sqlite"))
    store.close()
    again = SqliteStore(tmp_path / "state.db")
    assert again.source("shop") == source
    assert [one.masks for one in again.sources()] == [(), source.masks]
    again.close()
