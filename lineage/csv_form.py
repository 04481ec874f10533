"""How a CSV is written: what the service, the command line and the datasets are told of it, checked once.

    delimiter     the character between cells
    names         the names of the columns, of a CSV without a line of names
    rename        old=new, for names in the CSV
    null          words that are NULL in every column, beside those that always are
    time          name=column,column,..: a column made of others, joined by a space and read as a time
    time_format   how texts in timestamp columns are written, as in strptime; without it ISO 8601 or a number
    tz            the IANA zone of times that do not say theirs; without it UTC
    decimal       the point of floats, or a comma

An empty cell is NULL in every column; in numbers, bools and times `NA` and `-` are too (`NULL_WORDS`). Columns whose names cannot
be those of a stream (`PM2.5`) are known by `plain_name` (`PM2_5`).

`CsvForm.parse` takes texts, as options and query parameters are; `texts` gives them back, for requests and the journal.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lineage.errors import EddyError, did_you_mean
from lineage.schema import MAX_COLUMNS, check_name, is_name
from lineage.time_format import TimeFormat, time_format

#: What means NULL in columns of numbers, bools and times; in texts only the empty cell does.
NULL_WORDS = ("", "NA", "-")
#: Words of `null`, and characters of one.
MAX_WORDS, WORD_CHARACTERS = 100, 100

_DELIMITERS = {"tab": "\t", "\\t": "\t"}
#: The directives of columns that are called so.
_PARTS = {"year": "%Y", "month": "%m", "day": "%d", "hour": "%H", "minute": "%M", "second": "%S"}


class CsvError(EddyError):
    """A CSV cannot be read, or what is said of its form makes no sense."""

    default_code = "bad_csv"


@dataclass(frozen=True, slots=True)
class CsvForm:
    """The form of a CSV.

    >>> form = CsvForm.parse(delimiter=";", time="ts=year,month,day")
    >>> form.texts(), form.made_format
    ({'delimiter': ';', 'time': 'ts=year,month,day'}, '%Y %m %d')
    """

    delimiter: str = ","
    names: tuple[str, ...] = ()
    rename: tuple[tuple[str, str], ...] = ()
    null: tuple[str, ...] = ()
    #: the column that is made, and those it is made of
    time: tuple[str, tuple[str, ...]] | None = None
    time_format: str | None = None
    tz: str | None = None
    decimal: str = "."

    @classmethod
    def parse(
        cls,
        *,
        delimiter: str | None = None,
        names: str | None = None,
        rename: Sequence[str] | None = None,
        null: Sequence[str] | None = None,
        time: str | None = None,
        time_format: str | None = None,
        tz: str | None = None,
        decimal: str | None = None,
    ) -> CsvForm:
        """A form by texts; raises `CsvError` for what makes no sense."""
        form = cls(
            delimiter=_delimiter(delimiter),
            names=_names(names),
            rename=tuple(_pair(one) for one in rename or ()),
            null=tuple(null or ()),
            time=_made(time),
            time_format=time_format,
            tz=tz,
            decimal=decimal or ".",
        )
        form._check()
        return form

    def _check(self) -> None:
        if self.decimal not in (".", ",") or self.decimal == self.delimiter:
            raise _bad(
                "decimal", f'"{self.decimal}" cannot stand before decimals here', "a point, or a comma with another delimiter"
            )
        if len(self.null) > MAX_WORDS or any(len(word) > WORD_CHARACTERS for word in self.null):
            raise _bad(
                "null", "there are too many words for NULL, or too long ones", f"{MAX_WORDS} of {WORD_CHARACTERS} characters"
            )
        for what, given in (("renamed", [old for old, _ in self.rename]), ("a new name", [new for _, new in self.rename])):
            if len(set(given)) < len(given):
                raise _bad("rename", f'"{_twice(given)}" is {what} twice')
        if self.time_format is not None:
            _told(lambda: time_format(self.time_format or ""))
        if self.tz is not None:
            try:
                pc.assume_timezone(pa.array([0], pa.timestamp("us")), self.tz)
            except (pa.ArrowException, ValueError):
                raise _bad("tz", f'there is no zone "{self.tz}"', "the name of a place, such as Europe/Berlin or UTC") from None

    def texts(self) -> dict[str, Any]:
        """Return the texts that `parse` takes, without the defaults."""
        found: dict[str, Any] = {
            "delimiter": self.delimiter if self.delimiter != "," else None,
            "names": ",".join(self.names),
            "rename": [f"{old}={new}" for old, new in self.rename],
            "null": list(self.null),
            "time": f"{self.time[0]}={','.join(self.time[1])}" if self.time else None,
            "time_format": self.time_format,
            "tz": self.tz,
            "decimal": self.decimal if self.decimal != "." else None,
        }
        return {name: value for name, value in found.items() if value}

    @property
    def made_format(self) -> str | None:
        """The format of the column that is made: the one given, or that of columns called year, month, ..; None for ISO 8601."""
        if self.time_format is not None or self.time is None:
            return self.time_format
        directives = [_PARTS.get(name.lower()) for name in self.time[1]]
        if len(directives) < 3 or None in directives:
            return None
        return " ".join(directive or "" for directive in directives)

    def reader(self, made: bool) -> TimeFormat | None:
        """How times are read in a column of the CSV, or in the one that is made; None for ISO 8601 and numbers."""
        text = self.made_format if made else self.time_format
        return None if text is None else time_format(text)

    def words(self, kind: str) -> tuple[str, ...]:
        """Return the words that are NULL in a column of a type."""
        return ("", *self.null) if kind == "string" else (*NULL_WORDS, *self.null)

    def columns(self, header: Sequence[str], known: Iterable[str] | None = None) -> list[str]:
        """The names of the columns, by those in the CSV. With `known` names these are preferred, and others stay as they are."""
        new = dict(self.rename)
        for old in new:
            if old not in header:
                raise _bad("rename", f'there is no column "{old}"', did_you_mean(old, list(header)))
        spelled = None if known is None else {name.lower(): name for name in known}
        found: list[str] = []
        for n, written in enumerate(header, 1):
            name = new.get(written, written)
            plain = plain_name(name, n)
            if spelled is not None:
                plain = spelled.get(name.lower()) or spelled.get(plain.lower()) or name
            found.append(plain)
        if len(set(map(str.lower, found))) < len(found):
            double = _twice([name.lower() for name in found])
            both = [written for written, name in zip(header, found) if name.lower() == double]
            if both[0] == both[1]:
                raise CsvError(
                    f'the CSV has two columns "{both[0]}"', code="duplicate_column", hint="its first line has a name twice"
                )
            fact, hint = (
                f'"{both[0]}" and "{both[1]}" would be one column',
                "rename=old=new (--rename) gives one of them another name",
            )
            raise CsvError(fact, code="duplicate_column", hint=hint)
        return found

    def source(self, name: str, header: Sequence[str], columns: Sequence[str]) -> int:
        """The place of a column that another is made of, by its name in the CSV or in the stream."""
        for known in (list(header), list(columns), [column.lower() for column in columns]):
            if name in known:
                return known.index(name)
        raise _bad("time", f'there is no column "{name}"', did_you_mean(name, list(header)))


def plain_name(name: str, place: int) -> str:
    """A name that a stream's column can have; `place` is that of the column, from 1.

    >>> [plain_name(name, 3) for name in ("PM2.5", "id.orig_h", "Temp (°C)", "2nd", "", "ok")]
    ['PM2_5', 'id_orig_h', 'Temp_C', '_2nd', 'column_3', 'ok']
    """
    if is_name(name):
        return name
    ascii_only = unicodedata.normalize("NFKD", name.strip()).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", ascii_only).strip("_")[:100]
    return f"column_{place}" if not plain else f"_{plain}" if plain[0].isdigit() else plain


def types_of(words: Sequence[str]) -> dict[str, str]:
    """The types of columns that `column=type,..` words say.

    >>> types_of(["code=string,temp=float", "at=timestamp[s]"])
    {'code': 'string', 'temp': 'float', 'at': 'timestamp[s]'}
    """
    found: dict[str, str] = {}
    for word in ",".join(words).split(",") if words else ():
        name, _, kind = word.strip().rpartition("=")
        if not name or not kind:
            raise CsvError(f'"{word}" is not column=type', code="bad_csv_form", hint="code=string,temp=float")
        found[name] = kind
    return found


def _delimiter(text: str | None) -> str:
    found = _DELIMITERS.get(text or ",", text or ",")
    if len(found) != 1 or not (found.isascii() and (found.isprintable() or found == "\t")) or found.isalnum() or found in '" .-+':
        raise _bad("delimiter", f'"{text}" cannot stand between cells', 'one character, such as ";", "|" or tab')
    return found


def _names(text: str | None) -> tuple[str, ...]:
    if not text:
        return ()
    found = tuple(name.strip() for name in text.split(","))
    if "" in found or len(set(found)) < len(found):
        raise _bad("names", f'"{text}" has a name that is empty or comes twice', "names=a,b,c for a CSV without a line of names")
    if len(found) > MAX_COLUMNS:
        raise _bad("names", f"{len(found)} columns, more than {MAX_COLUMNS}")
    return found


def _pair(text: str) -> tuple[str, str]:
    old, _, new = text.rpartition("=")
    if not old or not is_name(new):
        raise _bad("rename", f'"{text}" is not old=new', "the new one has letters, digits and _, such as PM2.5=pm25")
    return old, new


def _made(text: str | None) -> tuple[str, tuple[str, ...]] | None:
    if not text:
        return None
    name, _, parts = text.partition("=")
    found = tuple(part.strip() for part in parts.split(","))
    if not parts or "" in found:
        raise _bad("time", f'"{text}" is not name=column,column', "such as ts=date,time or ts=year,month,day,hour")
    _told(lambda: check_name(name, "column"))
    return name, found


def _twice(given: Sequence[str]) -> str:
    return next(one for n, one in enumerate(given) if one in given[:n])


def _bad(option: str, fact: str, hint: str = "") -> CsvError:
    return CsvError(fact, code="bad_csv_form", detail=f"in {option}", hint=hint)


def _told(check: Any) -> None:
    """An error in a part, as one of the form."""
    try:
        check()
    except EddyError as error:
        raise CsvError(error.fact, code="bad_csv_form", hint=error.hint) from None


def from_texts(texts: Mapping[str, Any] | None) -> CsvForm:
    """The form that `texts` gave."""
    return CsvForm.parse(**texts) if texts else USUAL


#: Commas, a line of names, nothing else.
USUAL = CsvForm()
