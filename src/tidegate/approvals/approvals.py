"""Questions to a person and what became of them. Asks nobody itself: that is an edge's business."""

from __future__ import annotations

from tidegate.approvals.petition import Petition
from tidegate.errors import Code, GateError


class Approvals:
    """The gate's view of approvals: redeem a grant, or open a question."""

    def redeem(self, petition: Petition) -> str | None:
        """Use up the grant for exactly this petition; its id, or None if there is none.

        Raises: GateError APPROVAL_DECLINED while a denial cools off.
        """
        return None

    def ask(self, petition: Petition) -> GateError:
        """Open a question, or find the one that is open; the error tells the caller of it."""
        return GateError(Code.APPROVAL_NEEDED, petition.verdict.reason)
