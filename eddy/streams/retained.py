"""Numbers of removed predicate modules whose stored outcomes the log still needs.

Outcomes are stored with the rows under the number of their module (`stems/row_store.py`). A run that ended, of a query that
paused or whose text was replaced, is read by them until the log has dropped its last commit. So

    a number is given to another expression only when no stored row carries an outcome under it

and a module for the same expression, made before that, gets its number and the outcomes back: user functions are not called
again for rows that they have seen.
"""

from __future__ import annotations


class Retained:
    """Numbers and ends of the removed predicate modules of one stream, by the text of their expression."""

    __slots__ = ("_until", "_numbers")

    def __init__(self) -> None:
        #: the last commit in which an ended run had the expression
        self._until: dict[str, int] = {}
        #: numbers of modules that went meanwhile
        self._numbers: dict[str, int] = {}

    def retain(self, text: str, until: int) -> None:
        """Keep the expression's outcomes readable: a run with it ends after commit `until`."""
        self._until[text] = until

    def keep(self, text: str, number: int) -> bool:
        """Take over the number of a removed module; returns whether it must stay reserved."""
        if text in self._until:
            self._numbers[text] = number
            return True
        return False

    def take(self, text: str) -> int | None:
        """The number still reserved for the expression; None if there is none."""
        return self._numbers.pop(text, None)

    def drop(self, gone: int) -> list[int]:
        """The numbers that become free once commits up to `gone` are no longer logged."""
        past = [text for text, until in self._until.items() if until <= gone]
        for text in past:
            del self._until[text]
        return [self._numbers.pop(text) for text in past if text in self._numbers]
