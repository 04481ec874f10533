"""The catalog after a crash at any moment: every acknowledged transaction, and of the next one all or nothing."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import pytest

import storage.definition_catalog
from storage.definition_catalog import CatalogEntry, DefinitionCatalog
from storage.guarded_disk import GuardedDisk
from tests.reference.crashes import ForgetfulDisk, Lost, Timeline, Trial, first_loss, sweep
from tests.reference.seeds import kept_seeds, seeds
from tests.reference.simulated_disk import SimulatedDisk

State = tuple[CatalogEntry, ...]


@dataclass(frozen=True, slots=True)
class Expected:
    """What the catalog held after each transaction; from `n_must` on it may."""

    states: tuple[State, ...] = ((),)
    n_must: int = 0


class CatalogTrial(Trial[Expected]):
    n_steps = 6

    def run(self, disk: SimulatedDisk) -> Timeline[Expected]:
        timeline = Timeline(Expected())
        catalog = DefinitionCatalog(GuardedDisk(self.wrap(disk)))
        self._work(disk, catalog, timeline, random.Random(self.seed), self.n_steps)
        catalog.close()
        return timeline

    def recover(self, disk: SimulatedDisk, expected: Expected) -> Timeline[Expected]:
        catalog = DefinitionCatalog(GuardedDisk(self.wrap(disk)))
        try:
            found = tuple(catalog.definitions())
            number = catalog.number()
            if number < expected.n_must:
                raise Lost(f"transaction {expected.n_must} was acknowledged, {number} is the last")
            if number >= len(expected.states) or found != expected.states[number]:
                raise Lost(f"the definitions are not those of transaction {number}")
            timeline = Timeline(expected)
            timeline.note(disk, Expected(expected.states[: number + 1], number))
            self._work(disk, catalog, timeline, random.Random(self.seed + 1), 1)
            return timeline
        finally:
            catalog.close()

    def _work(
        self, disk: SimulatedDisk, catalog: DefinitionCatalog, timeline: Timeline[Expected], chance: random.Random, n_steps: int
    ) -> None:
        for _ in range(n_steps):
            expected = timeline.last
            number = len(expected.states)
            drop = {("query", f"q{chance.randrange(12)}") for _ in range(chance.randrange(4))}
            names = {f"q{chance.randrange(12)}" for _ in range(chance.randrange(1, 5))}
            put = [CatalogEntry("query", name, "x" * chance.choice((10, 500, 6000)), number) for name in sorted(names)]
            gone = drop | {(one.kind, one.name) for one in put}
            state = (*(one for one in expected.states[-1] if (one.kind, one.name) not in gone), *put)
            expected = replace(expected, states=(*expected.states, state))
            timeline.note(disk, expected)
            catalog.apply(number, put, sorted(drop))
            timeline.note(disk, replace(expected, n_must=number))


def with_pragmas(monkeypatch: pytest.MonkeyPatch, *more: str) -> None:
    """Catalogs are opened with other settings: the last one that is given counts."""
    given = (*storage.definition_catalog._PRAGMAS, *(f"PRAGMA {pragma}" for pragma in more))
    monkeypatch.setattr(storage.definition_catalog, "_PRAGMAS", given)


@pytest.fixture
def small_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is folded into the database every few transactions, as it is in years of use."""
    with_pragmas(monkeypatch, "wal_autocheckpoint = 6")


@pytest.mark.parametrize(("kept", "n_steps"), kept_seeds("fault", "catalog"))
def test_a_seed_that_failed_once_holds(kept: int, n_steps: int) -> None:
    assert sweep(CatalogTrial(kept, n_steps=n_steps), n_losses=0, again_every=1) > 0


def test_acknowledged_transactions_survive_a_crash_at_any_operation() -> None:
    assert sweep(CatalogTrial(100), n_losses=3) > 200


def test_they_survive_while_the_log_is_folded_in(small_log: None) -> None:
    assert sweep(CatalogTrial(200), n_losses=3) > 200


def test_they_survive_a_crash_of_the_recovery_as_well(small_log: None) -> None:
    assert sweep(CatalogTrial(300, n_steps=4), n_losses=2, again_every=19) > 300


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(range(1000, 1006), 1))
def test_one_of_many_seeds_holds(seed: int) -> None:
    assert sweep(CatalogTrial(seed), n_losses=15, again_every=50) > 2000


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(range(2000, 2006), 1))
def test_one_of_many_seeds_holds_while_the_log_is_folded_in(seed: int, small_log: None) -> None:
    assert sweep(CatalogTrial(seed), n_losses=15, again_every=50) > 2000


def caught() -> str:
    return first_loss(CatalogTrial, n_seeds=5, n_losses=5)


def test_a_catalog_that_does_not_sync_is_caught(monkeypatch: pytest.MonkeyPatch, small_log: None) -> None:
    with_pragmas(monkeypatch, "synchronous = off")
    assert caught()


def test_a_catalog_that_syncs_only_now_and_then_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    with_pragmas(monkeypatch, "synchronous = normal")
    assert "was acknowledged" in caught()


FORGETFUL = {
    "no sync of the log": ["sync -wal"],
    "no sync of the database": ["sync catalog.sqlite"],
    "no sync of the directory": ["sync_directory "],
}


@pytest.mark.parametrize("skipped", FORGETFUL.values(), ids=FORGETFUL.keys())
def test_files_that_forget_one_thing_are_caught(skipped: list[str], small_log: None) -> None:
    assert first_loss(lambda seed: CatalogTrial(seed, lambda disk: ForgetfulDisk(disk, skipped)), n_seeds=5, n_losses=5)
