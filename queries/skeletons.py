"""The skeleton of a text: what is left when its literals are taken out, so that thousands of texts are known by one parse.

    WHERE sensor = 17 AND room <> 'it''s'        skeleton  WHERE sensor = <int> AND room <> <string>
                                                 values    17, "it's"

One regular expression cuts the text, linear in its length; each literal is a *slot*, with its kind in the skeleton. Two texts
with one skeleton have the same tokens but for the values of those slots, so the parser does the same with both unless it looks
at a value. What could be read in two ways (comments, backslashes, braces) or is no plain number has no skeleton: it is read as
it is. The twin of all that is `queries/tokens.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: A number, a text in quotes, or a quoted name, which stays; a number next to a letter, a digit or a point is none of ours.
_LITERAL = re.compile(
    r"""((?<![\w.])[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![\w.])
       | '[^']*+(?:''[^']*+)*+'
       | "[^"]*+(?:""[^"]*+)*+")""",
    re.VERBOSE,
)
#: What makes the cut doubtful, also within quotes; the last one marks slots.
_DOUBTFUL = re.compile(r"--|/\*|[\\${}\0\x01]")
#: Digits of an int that surely fits into 64 bits.
_DIGITS = 18
_INT, _FLOAT, _STRING = "\x01i", "\x01f", "\x01s"

#: The value of a slot.
Value = int | float | str


@dataclass(slots=True)
class Cut:
    """A text cut into its skeleton and the values of its slots."""

    skeleton: str
    values: list[Value]


def cut(text: str) -> Cut | None:
    """The skeleton and values of a text; None where it has to be read as it is.

    >>> cut("WHERE a1 = 17 AND s <> 'it''s'").values
    [17, "it's"]
    """
    if _DOUBTFUL.search(text):
        return None
    parts = _LITERAL.split(text)
    values: list[Value] = []
    for at in range(1, len(parts), 2):
        literal = parts[at]
        first = literal[0]
        if first == "'":
            # a letter in front is a prefix, a quote behind or in front another rule
            if parts[at - 1][-1:].isalnum():
                return None
            content = literal[1:-1]
            values.append(content.replace("''", "'") if "''" in content else content)
            parts[at] = _STRING
        elif first != '"':
            if literal.isdigit():
                if len(literal) > _DIGITS:
                    return None
                values.append(int(literal))
                parts[at] = _INT
            else:
                number = float(literal)
                if number - number != 0.0:
                    return None
                values.append(number)
                parts[at] = _FLOAT
    return Cut("".join(parts), values)


def slot_places(text: str) -> list[tuple[int, int]]:
    """The place `[start, end)` of each slot of a text that has a skeleton."""
    return [match.span() for match in _LITERAL.finditer(text) if match[0][0] != '"']
