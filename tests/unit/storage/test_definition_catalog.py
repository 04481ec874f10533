"""The catalog on a real disk: batches of definitions, all or none, and back in order."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from lineage.errors import StorageError
from storage.definition_catalog import CatalogEntry, DefinitionCatalog
from storage.disk import LocalDisk
from storage.guarded_disk import GuardedDisk


def open_catalog(path: Path) -> DefinitionCatalog:
    return DefinitionCatalog(GuardedDisk(LocalDisk(path)))


def test_definitions_come_back_in_the_order_they_were_last_written(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    first, second, third = (CatalogEntry("query", name, f'{{"sql": "{name}"}}', 3) for name in "cab")
    catalog.apply(3, [first, second, third])
    catalog.apply(4, [first._replace(number=4)])
    catalog.close()
    catalog = open_catalog(tmp_path)
    assert catalog.definitions() == [second, third, first._replace(number=4)]
    assert catalog.number() == 4
    catalog.close()


def test_names_of_different_kinds_do_not_meet(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    catalog.apply(1, [CatalogEntry("stream", "a", "{}", 1), CatalogEntry("table", "a", "[]", 1)])
    catalog.apply(2, drop=[("stream", "a"), ("stream", "not there")])
    assert catalog.definitions() == [CatalogEntry("table", "a", "[]", 1)]
    catalog.close()


def test_a_definition_dropped_and_put_in_one_call_is_there(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    catalog.apply(1, [CatalogEntry("query", "q", "old", 1)])
    catalog.apply(2, [CatalogEntry("query", "q", "new", 2)], [("query", "q")])
    assert catalog.definitions() == [CatalogEntry("query", "q", "new", 2)]
    catalog.close()


def test_a_batch_that_fails_half_way_changes_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[CatalogEntry]:
        yield CatalogEntry("query", "a", "{}", 1)
        raise ZeroDivisionError

    catalog = open_catalog(tmp_path)
    with pytest.raises(ZeroDivisionError):
        catalog.apply(1, broken(), [])
    assert (catalog.definitions(), catalog.number()) == ([], 0)
    catalog.close()


def test_ten_thousand_definitions_are_one_quick_transaction(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    many = [CatalogEntry("query", f"q{at}", '{"sql": "SELECT * FROM lab WHERE light > 100"}', 1) for at in range(10_000)]
    start = time.perf_counter()
    catalog.apply(1, many)
    catalog.apply(2, [], [(one.kind, one.name) for one in many[::2]])
    assert time.perf_counter() - start < 2
    assert catalog.definitions() == many[1::2]
    catalog.close()


def test_meta_is_kept(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    catalog.set_meta(layout="1", created="today")
    catalog.set_meta(layout="2")
    catalog.close()
    catalog = open_catalog(tmp_path)
    assert [catalog.meta(key) for key in ("layout", "created", "other")] == ["2", "today", None]
    catalog.close()


def test_it_is_a_database_that_other_tools_can_read(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    catalog.apply(1, [CatalogEntry("stream", "lab", "{}", 1)])
    catalog.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["catalog.sqlite"]
    with apsw.Connection(str(tmp_path / "catalog.sqlite")) as connection:
        assert connection.execute("PRAGMA integrity_check").get == "ok"
        assert connection.execute("SELECT name FROM definitions").get == "lab"


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "catalog.sqlite").write_bytes(b"not a database" * 1000)
    with pytest.raises(StorageError, match="the catalog is damaged") as caught:
        open_catalog(tmp_path)
    assert caught.value.file == "catalog.sqlite" and caught.value.hint


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    catalog.close()
    with apsw.Connection(str(tmp_path / "catalog.sqlite")) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(StorageError, match="the catalog has layout 2"):
        open_catalog(tmp_path)
