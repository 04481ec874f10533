"""The modules that test a stream's rows, their costs and cleared bits, and the routes through them.

    grouped filters      one a column, in the filter bank: intervals of values
    predicate modules    one an expression, shared by all that ask for it; outcomes are kept with the rows under its number

Each module has a number in the ledger. `version` counts the changes of what rows have to visit: modules with predicates,
clauses or none, indexes, windows, ids that are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from eddy.base.plans import NO_MODULES
from eddy.routing.base import Ledger, Policy
from eddy.streams.retained import Retained
from filters.expressions.expression import user_functions_of
from filters.expressions.predicate import Atom, Condition, IndexAtom
from filters.expressions.residual import PredicateModule
from filters.index.bank import FilterBank
from filters.values.intervals import Intervals
from lineage.dictionary import Dictionary
from stems.row_store import RowStore

#: Guesses of the cost of one row until it is measured.
_FILTER_COST_NS = 5.0
_EXPRESSION_COST_NS = 100.0
#: Rows after which the visits counted by kernels are handed to the policy.
LEARN_ROWS = 256


@dataclass(slots=True)
class Route:
    """An order of the modules that the policy chose, for one set of modules of the source."""

    version: int
    #: ledger numbers, and the same as numbers of filters (-1: a predicate module)
    modules: np.ndarray
    filters: np.ndarray
    #: batches it still serves
    left: int
    #: whether the policy learns from how it goes
    explored: bool
    #: whether rows visit nothing else, and nothing is kept with them
    plain: bool = False


class Modules:
    """The modules of one stream; `numbers` are for the names of predicate modules, shared by all streams of an engine."""

    def __init__(
        self, name: str, store: RowStore, dictionaries: list[Dictionary | None], numbers: Iterator[int]
    ) -> None:  # fmt: skip
        self._name = name
        self._store = store
        self._numbers = numbers
        self.bank = FilterBank(store.columns, dictionaries)
        #: predicate modules by the text of their expression
        self.by_text: dict[str, PredicateModule] = {}
        self._retained = Retained()
        self.ledger = Ledger()
        #: ledger number of each filter, and the other way round (-1: a predicate module)
        self.filter_module = np.zeros(0, np.int64)
        self.filter_of = np.zeros(0, np.int32)
        self.version = 0
        self._derived_version = -1
        self._ready = np.zeros(0, np.int32)
        self._ready_filters = np.zeros(0, np.int32)
        self.by_number: dict[int, PredicateModule] = {}
        #: whether any predicate module is asked for
        self.any_asked = False
        self.route: Route | None = None
        #: rows whose visits were counted: those matched row-major and samples of the others
        self.counted_rows = 0
        #: those of them whose visits the policy has not seen yet
        self._unlearned_rows = 0
        #: samples taken, and batches until the next one: soon at first, then every so many
        self.samples = 0
        self.unsampled = 0

    # ---- predicates of slots

    def on_assign(self, slot: int) -> None:
        for module in self.by_text.values():
            module.on_assign(slot)

    def resize(self, n_words: int) -> None:
        self.bank.resize(n_words)
        for module in self.by_text.values():
            module.resize(n_words)

    def add(self, slot: int, atom: Atom, label: str) -> None:
        """Apply a predicate for a slot; `label` names a module that is made for it."""
        if isinstance(atom, IndexAtom):
            self.put(slot, atom.position, atom.intervals)
            return
        text = str(atom)
        module = self.by_text.get(text)
        if module is None:
            functions = user_functions_of(atom.expression)
            kind = f"function:{functions[0].name}" if functions else f"residual:{label}"
            cost = 1000 * sum(function.cost for function in functions) or _EXPRESSION_COST_NS
            held = self._retained.take(text)
            number = self.ledger.add(f"{kind}#{next(self._numbers)}", cost) if held is None else held
            if number == len(self.filter_of):
                self.filter_of = np.append(self.filter_of, np.int32(-1))
            module = self.by_text[text] = PredicateModule(number, self.ledger.names[number], atom.expression, self.bank.n_words)
        module.add(slot)
        self._count_predicate(module.number, 1)

    def put(self, slot: int, position: int, intervals: Intervals) -> None:
        """Apply intervals of a column for a slot; the column may be a derived one."""
        f = self.bank.add(slot, position, intervals)
        if f == len(self.filter_module):
            self.filter_module = np.append(self.filter_module, -1)
        if self.filter_module[f] < 0:
            number = self.ledger.add(f"filter:{self._name}.{self._store.columns[position].name}", _FILTER_COST_NS)
            self.filter_module[f] = number
            if number == len(self.filter_of):
                self.filter_of = np.append(self.filter_of, np.int32(-1))
            self.filter_of[number] = f
        self._count_predicate(self.filter_module[f], 1)

    def take(self, slot: int, position: int, intervals: Intervals) -> None:
        """Apply intervals of a column for a slot no more; a filter on a derived column goes with its last predicate."""
        f = self.bank.remove(slot, position, intervals, self._store.end)
        number = int(self.filter_module[f])
        self._count_predicate(number, -1)
        if position >= len(self._store.schema) and not self.bank.filters[f].n_predicates:
            self.bank.vacate(f)
            self.filter_module[f] = self.filter_of[number] = -1
            self._free_number(number)

    def _count_predicate(self, module: int, by: int) -> None:
        """Count a predicate of a module up or down; the first one adds the module to routes, the last one removes it."""
        predicates = self.ledger.predicates
        n = int(predicates[module]) + by
        predicates[module] = n
        if n == (by > 0):
            self.version += 1

    def remove(self, slot: int, atom: Atom) -> None:
        """Apply a predicate for a slot no more."""
        if isinstance(atom, IndexAtom):
            self.take(slot, atom.position, atom.intervals)
            return
        module = self.by_text[str(atom)]
        module.remove(slot)
        self._count_predicate(module.number, -1)
        if not len(module.slots):
            del self.by_text[module.text]
            if not self._retained.keep(module.text, module.number):
                self._free_number(module.number)

    def _free_number(self, number: int) -> None:
        """Free the number of a module whose outcomes are no longer read."""
        self._store.outcomes.drop(number)
        self.ledger.remove(number)

    def numbers_of(self, condition: Condition) -> Mapping[str, int]:
        """Numbers of the predicate modules of a condition, by the text of their expression; predicates on derived columns have
        none."""
        if not condition.residuals and not condition.clauses:
            return NO_MODULES
        texts = [str(atom) for atom in condition.atoms() if not isinstance(atom, IndexAtom)]
        return {text: self.by_text[text].number for text in texts if text in self.by_text}

    def end_run(self, condition: Condition, until: int) -> None:
        """A run with this condition ends after a commit, but can still be read in the log."""
        for atom in condition.atoms():
            if not isinstance(atom, IndexAtom):
                self._retained.retain(str(atom), until)

    def log_dropped(self, gone: int) -> None:
        """Commits up to `gone` are no longer logged."""
        for number in self._retained.drop(gone):
            self._free_number(number)

    # ---- visits

    def ready_modules(self) -> np.ndarray:
        """Ledger numbers of the modules that apply any predicate, ascending."""
        if self._derived_version != self.version:
            self._derive()
        return self._ready

    def ready_filters(self) -> np.ndarray:
        """Numbers of the grouped filters that apply any predicate."""
        if self._derived_version != self.version:
            self._derive()
        return self._ready_filters

    def _derive(self) -> None:
        self._derived_version = self.version
        self._ready = np.flatnonzero(self.ledger.predicates).astype(np.int32)
        filters = self.filter_of[self._ready]
        self._ready_filters = filters[filters >= 0]
        self.by_number = {module.number: module for module in self.by_text.values()}
        self.any_asked = any(module.slots.size for module in self.by_text.values())

    def choose(self, policy: Policy) -> Route:
        """Ask the policy for a route, unless there is nothing to choose."""
        ready = self.ready_modules()
        route = Route(self.version, ready, self.filter_of[ready], 1 << 30, False)
        if len(ready) > 1:
            route.modules = policy.route(self.ledger, ready).copy()
            route.filters = self.filter_of[route.modules]
            route.left = policy.serves
            route.explored = policy.learns
        self.route = route
        return route

    def runs(self, route: np.ndarray, later: set[int]) -> list[np.ndarray | PredicateModule]:
        """The route cut into runs of filters and single predicate modules, without deferred modules."""
        runs: list[np.ndarray | PredicateModule] = []
        filters: list[int] = []
        for number in route.tolist():
            f = int(self.filter_of[number])
            if f >= 0:
                filters.append(f)
                continue
            if number in later:
                continue
            if filters:
                runs.append(np.array(filters, np.int32))
                filters = []
            runs.append(self.by_number[number])
        if filters:
            runs.append(np.array(filters, np.int32))
        return runs

    def count_rows(self, n_rows: int, policy: Policy) -> None:
        """So many rows went row-major; the policy hears of their visits now and then."""
        self.counted_rows += n_rows
        self._unlearned_rows += n_rows
        if self._unlearned_rows >= LEARN_ROWS:
            self.learn(policy)

    def learn(self, policy: Policy) -> None:
        """Hand the visits that kernels counted to the ledger and the policy."""
        self._unlearned_rows = 0
        visits = self.bank.visits
        visited = visits[:, 0].nonzero()[0]
        if len(visited):
            rows_in, rows_out, cleared = visits[visited].T
            modules = self.filter_module[visited]
            self.ledger.record(modules, rows_in, rows_out, cleared, sampled=policy.learns)
            policy.visited(self.ledger, modules, rows_in, rows_out)
            visits[:] = 0

    def visited(self, module: int, rows_in: int, rows_out: int, ns: int, policy: Policy) -> None:
        """A predicate module took so many rows and left some, in so many nanoseconds."""
        ledger, modules = self.ledger, np.array([module])
        taken, returned = np.array([rows_in]), np.array([rows_out])
        ledger.measure(module, rows_in, ns)
        ledger.record(modules, taken, returned, (taken - returned) * ledger.predicates[modules], sampled=False)
        policy.visited(ledger, modules, taken, returned)

    # ---- upkeep

    def check(self, predicates: dict[int, dict[int, Intervals]], slots: dict[str, set[int]]) -> None:
        """All invariants, with the predicates of filters by slot, and the slots that ask for each predicate module."""
        self.bank.check(predicates)
        if self._derived_version == self.version:
            derived = self._derived()
            self._derive()
            assert derived == self._derived(), "what is derived is fresh"
        for text, module in self.by_text.items():
            module.check(slots[text])

    def _derived(self) -> tuple[object, ...]:
        return self._ready.tolist(), self._ready_filters.tolist(), self.any_asked, self.by_number
