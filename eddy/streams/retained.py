"""Numbers of predicate modules that went while the log can still be read by their outcomes.

Outcomes are stored with the rows under the number of their module (`stems/row_store.py`). A run that ended, of a query that
paused or whose text was replaced, is read by them until the log has dropped its last commit. So

    a number is given to another expression only when no stored row carries an outcome under it

and a module for the same expression, made before that, gets its number and the outcomes back: user functions are not called
again for rows that they have seen.
"""

from __future__ import annotations


class Retained:
    """What the predicate modules of one stream leave behind, by the text of their expression."""

    __slots__ = ("_until", "_numbers")

    def __init__(self) -> None:
        #: the last commit in which an ended run had the expression
        self._until: dict[str, int] = {}
        #: numbers of modules that went meanwhile
        self._numbers: dict[str, int] = {}

    def retain(self, text: str, until: int) -> None:
        """A run that had the expression ends after commit `until`."""
        self._until[text] = until

    def keep(self, text: str, number: int) -> bool:
        """A module goes; returns whether its number has to stay."""
        if text in self._until:
            self._numbers[text] = number
            return True
        return False

    def take(self, text: str) -> int | None:
        """The number that the expression still has, None if it has none."""
        return self._numbers.pop(text, None)

    def drop(self, gone: int) -> list[int]:
        """Commits up to `gone` are no longer logged: the numbers that nobody reads by any more."""
        past = [text for text, until in self._until.items() if until <= gone]
        for text in past:
            del self._until[text]
        return [self._numbers.pop(text) for text in past if text in self._numbers]
