"""Bringing stored rows up to date for a leg that came after them (`history="window"`, `replace`).

A stored row carries region ids and outcomes for the legs that were there when it came. A leg that is to count older rows too
needs, from its first row on,

    window.oldest    not above the first of them that is alive, of wider windows neither
    region ids       of the filters that it uses, found anew from the stored cells: exact for every other leg as well
    outcomes         of its predicate modules, for rows that its other predicates admit; what is known is not computed again

A leg in a candidate index is matched by the cells and needs no ids. Cost: about 13 ns a row and filter.
"""

from __future__ import annotations

import numpy as np

from eddy.streams.legs import Leg
from eddy.streams.source import Source
from filters.expressions.predicate import Atom, IndexAtom
from filters.expressions.residual import NOT_TRUE, TRUE, UNTRIED
from lineage.batch import TupleBatch
from stems.frame import PageFrame, interval_rows
from stems.row_store import Page
from windows.spec import WindowKind


def recall(source: Source, leg: Leg, first: int) -> None:
    """Make the rows from position `first` on count for a leg."""
    if first >= source.store.end:
        # most queries only count later rows
        leg.since = min(leg.since, first)
        return
    window = leg.window
    if not window.window.is_stream and window.window.kind is not WindowKind.ROWS:
        alive = source.store.first_after(source.timeline.now - window.window.width_us)
        source.placement.classes.reach_back(window.window.width_us, max(first, alive))
    if leg.dense and source.placement.keeps_ids:
        for page, at, stop in source.store.slices(first, leg.since):
            _find_ids(source, leg, page, at, stop)
    for page, at, stop in source.store.slices(first, leg.since) if leg.derived else ():
        for one in leg.derived:
            one.errors_before -= source.derived.errors_in(one.column, page, at, stop)
    # a function that waits for a partner has not seen all rows that came since, either
    waiting = any(source.deferral.pending(number) for number in source.modules.numbers_of(leg.condition).values())
    for page, at, stop in source.store.slices(first, source.store.end if waiting else leg.since):
        _find_outcomes(source, leg, page, at, stop)
    leg.since = min(leg.since, first)


def _find_ids(source: Source, leg: Leg, page: Page, at: int, stop: int) -> None:
    n_rows = stop - at
    batch = TupleBatch(page.cells, page.nulls, at, n_rows)
    ranks = np.empty(n_rows, np.int32)
    positions = {atom.position for atom in leg.condition.atoms() if isinstance(atom, IndexAtom)}
    for position in positions | {one.column.position for one in leg.derived}:
        f = source.modules.bank.index(position)
        assert f is not None, "a dense leg has its predicates in the bank"
        filter_ = source.modules.bank.filters[f]
        filter_.find(batch, ranks)
        filter_.write_ids(ranks, source.store.ids_of(page, f)[at : at + n_rows])


def _find_outcomes(source: Source, leg: Leg, page: Page, at: int, stop: int) -> None:
    condition = leg.condition
    if condition.never or all(isinstance(atom, IndexAtom) for atom in condition.atoms()):
        return
    wanted = np.ones(stop - at, np.bool_)
    within = [(atom.position, atom.intervals) for atom in condition.conjuncts]
    for position, intervals in within + [(one.column.position, one.intervals) for one in leg.derived]:
        wanted &= interval_rows(intervals, source.store, page, at, stop, position, source.dictionaries[position])
    for residual in leg.single():
        if not isinstance(residual, IndexAtom):
            wanted &= _outcome(source, residual, page, at, stop, wanted)
    for clause in condition.clauses:
        for either in clause:
            if not isinstance(either, IndexAtom):
                _outcome(source, either, page, at, stop, wanted)


def _outcome(source: Source, atom: Atom, page: Page, at: int, stop: int, wanted: np.ndarray) -> np.ndarray:
    """For each row, whether an expression is true, once it has been tried on the wanted rows."""
    module = source.modules.by_text[str(atom)]
    known = page.outcomes.get(module.number)
    stored = np.full(stop - at, UNTRIED, np.uint8) if known is None else known[at:stop].copy()
    untried = wanted & (stored == UNTRIED)
    if untried.any():
        frame = PageFrame(page, source.schema, source.dictionaries, slice(at, stop))
        outcome = module.outcome(frame, untried)
        stored[untried] = np.where(outcome[untried], TRUE, NOT_TRUE)
        source.store.outcomes.keep(page, at, module.number, stored)
    found: np.ndarray = stored == TRUE
    return found
