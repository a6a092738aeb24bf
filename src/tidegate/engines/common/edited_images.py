"""What engines share that keep the rows of edits: their images, how large these are, and the end of
keeping them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from tidegate.engines.common.undo_rows import ROW_BYTES, UndoTable, too_large
from tidegate.model.changes import ChangeImage, ChangeKeeper, RowImage
from tidegate.model.row_changes import ChangeRows, FoundRow


def image_of_edits(
    table: UndoTable,
    change: ChangeRows,
    there: Mapping[int, FoundRow],
    after: Mapping[int, FoundRow],
) -> ChangeImage:
    """The rows of a change before and after it, by the places of their edits."""
    rows: list[RowImage] = []
    for place, edit in enumerate(change.edits):
        was = there[place].image if edit.before is not None else None
        now = after.get(place)
        rows.append(RowImage(was, None if now is None else now.image))
    return ChangeImage((table.image(rows),))


def objection_to_lost(count: int, found: int) -> str:
    """Why a change is not kept if some of the rows that it wrote are not there; empty if all are.
    Whatever became of them would stay when the change is taken back."""
    lost = "a trigger removed a row that was written, or gave it another key"
    return lost if found < count else ""


def image_of_added(table: UndoTable, rows: Iterable[FoundRow]) -> ChangeImage:
    """Rows that were added."""
    return ChangeImage((table.image([RowImage(None, row.image) for row in rows]),))


def image_size(image: ChangeImage) -> int:
    """About how many bytes an image takes whose values are texts or bytes."""
    return sum([_row_size(row) for table in image.tables for row in table.rows])


async def end_image(keeper: ChangeKeeper, image: ChangeImage | None, objection: str) -> None:
    """Have an image kept, or say why it is not: `objection`, or that it is too large. Raises: as
    the keeper."""
    if image is not None and not objection and image_size(image) > keeper.max_bytes:
        objection = too_large(keeper.max_bytes)
    if image is None or objection:
        await asyncio.to_thread(keeper.give_up, objection)
    else:
        await asyncio.to_thread(keeper.prepare, image)


def remarks_on(triggers: Sequence[str]) -> tuple[str, ...]:
    """What is said of a change of a table with triggers."""
    return (f"these triggers may have fired: {', '.join(triggers)}",) if triggers else ()


def _row_size(row: RowImage) -> int:
    values = [*(row.before or ()), *(row.after or ())]
    return ROW_BYTES + sum([len(each) for each in values if each is not None])
