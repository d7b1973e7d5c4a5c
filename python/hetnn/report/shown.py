"""How an answer shows itself: a card in a notebook, text wherever there is none."""

from __future__ import annotations

from typing import Any


class Shown:
    """Has a card and a text; a notebook takes the first that it can show, a terminal the text."""

    def _card(self) -> str:
        """An HTML fragment whose style is that of its own elements alone."""
        raise NotImplementedError

    def _text_of_card(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self._card()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self._text_of_card(), "text/html": self._card()}
