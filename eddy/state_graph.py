"""The objects of an engine's state as a pickle that names nothing but what is allowed.

Going out, what pickle cannot or should not do by itself is told here: arrays are numbers (`eddy/state_arrays.py`), kernels and
bound methods are names. Objects that know each other all round, the **hubs**, are numbered too and their attributes written one
after the other, so that a path through thousands of queries is not a recursion.

Coming in, a name is looked up only if it is that of a class of the engine's own packages, or in the short list below: whatever
the bytes are, nothing else is called. A bound method is made only of a function in the class of an object of ours.
"""

from __future__ import annotations

import dataclasses
import importlib
import io
import operator
import pickle
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from eddy.catalog import Catalog
from eddy.committer import Committer
from eddy.core import JoinCore, StreamCore
from eddy.engine import Engine
from eddy.join_group import JoinGroup
from eddy.legs import Leg
from eddy.lifecycle import Lifecycle
from eddy.operation import Operation, Stage
from eddy.query import Query
from eddy.shared_group import SharedGroup
from eddy.shared_operation import SharedOperation
from eddy.source import Source
from eddy.state_arrays import Array, Arrays
from eddy.timeline import Timeline

#: Packages whose classes may be in a state.
PACKAGES = frozenset({"lineage", "filters", "stems", "windows", "queries", "eddy"})

#: Classes, with those derived from them, whose objects are numbered: between two of them paths are short.
HUBS = (
    Engine, Catalog, Committer, Lifecycle, Timeline, Source, Query, Leg, JoinGroup, SharedGroup, StreamCore, JoinCore, Stage,
    Operation, SharedOperation,
)  # fmt: skip

#: What else may be named: containers, dates, and what makes arrays of the standard library.
OTHERS = frozenset({
    ("builtins", "set"), ("builtins", "frozenset"), ("builtins", "range"), ("builtins", "slice"), ("builtins", "bytearray"),
    ("collections", "Counter"), ("collections", "OrderedDict"), ("collections", "defaultdict"), ("collections", "deque"),
    ("datetime", "date"), ("datetime", "datetime"), ("datetime", "timedelta"), ("datetime", "timezone"),
    ("functools", "partial"), ("operator", "itemgetter"), ("array", "_array_reconstructor"), ("array", "array"),
    ("numpy", "dtype"),
})  # fmt: skip


class NotDumpable(Exception):
    """An object that cannot be in a state; `what` says which."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class NotAllowed(Exception):
    """A state names what it may not."""


def is_ours(kind: Any) -> bool:
    return isinstance(kind, type) and kind.__module__.partition(".")[0] in PACKAGES


# What a state names where the loader has to do something; `Reader.find_class` gives its own.


def array(number: int) -> Array:
    raise AssertionError("the loader has the arrays")


def hub(number: int) -> object:
    raise AssertionError("the loader has the hubs")


def kernel(module: str, name: str) -> Any:
    """A kernel of the engine."""
    if module.partition(".")[0] not in PACKAGES:
        raise NotAllowed(f"{module}.{name}")
    found = getattr(importlib.import_module(module), name, None)
    if not isinstance(found, Dispatcher):
        raise NotAllowed(f"{module}.{name}")
    return found


def method(of: object, name: str) -> Callable[..., Any]:
    """A method of an object of the engine."""
    found = next((vars(kind)[name] for kind in type(of).__mro__ if name in vars(kind) and is_ours(kind)), None)
    if not isinstance(found, types.FunctionType):
        raise NotAllowed(f"{type(of).__name__}.{name}")
    return types.MethodType(found, of)


def scalar(dtype: str, data: bytes) -> Any:
    """A number as numpy has it."""
    return np.frombuffer(data, dtype)[0]


#: By name.
_MADE: dict[str, Callable[..., Any]] = {made.__name__: made for made in (array, hub, kernel, method, scalar)}


class Writer(pickle.Pickler):
    """Writes the graph below an engine; `arrays` are those it met."""

    def __init__(self) -> None:
        self._stream = io.BytesIO()
        super().__init__(self._stream, protocol=5)
        self.arrays = Arrays()
        self._hubs: list[object] = []
        self._numbers: dict[int, int] = {}
        #: what is done with objects of a type; None: as pickle does
        self._ways: dict[type, Callable[[Any], Any] | None] = {}

    def write(self, root: object) -> tuple[list[type], bytes]:
        """The classes of the hubs, and the graph: the root's number, then the attributes of each hub."""
        self._reduce_hub(root)
        at = 0
        while at < len(self._hubs):
            self.dump(self._hubs[at].__getstate__())
            at += 1
        return [type(each) for each in self._hubs], self._stream.getvalue()

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if kind in self._ways:
            way = self._ways[kind]
        else:
            way = self._ways[kind] = self._way_of(obj)
        return NotImplemented if way is None else way(obj)

    def _way_of(self, obj: Any) -> Callable[[Any], Any] | None:
        if isinstance(obj, np.ndarray):
            return self._reduce_array
        if isinstance(obj, HUBS):
            return self._reduce_hub
        if isinstance(obj, np.generic):
            return _reduce_scalar
        if isinstance(obj, np.dtype):
            return _reduce_dtype
        if isinstance(obj, Dispatcher):
            return _reduce_kernel
        if isinstance(obj, types.MethodType):
            return _reduce_method
        if isinstance(obj, type | types.FunctionType | types.BuiltinFunctionType):
            return _check_name
        if not is_ours(type(obj)) and (type(obj).__module__, type(obj).__qualname__) not in OTHERS:
            raise NotDumpable(f"{type(obj).__module__}.{type(obj).__qualname__} {getattr(obj, '__qualname__', '')}".rstrip())
        return _way_of_values(type(obj))

    def _reduce_array(self, obj: Array) -> Any:
        return array, (self.arrays.number(obj),)

    def _reduce_hub(self, obj: object) -> Any:
        number = self._numbers.get(id(obj))
        if number is None:
            number = self._numbers[id(obj)] = len(self._hubs)
            self._hubs.append(obj)
        return hub, (number,)


def _reduce_scalar(obj: np.generic) -> Any:
    return scalar, (obj.dtype.str, obj.tobytes())


def _reduce_dtype(obj: np.dtype[Any]) -> Any:
    return np.dtype, (obj.str,)


def _reduce_kernel(obj: Any) -> Any:
    return kernel, (obj.__module__, obj.__name__)


def _reduce_method(obj: types.MethodType) -> Any:
    return method, (obj.__self__, obj.__func__.__name__)


def _check_name(obj: Any) -> Any:
    """Of a class or function."""
    if not is_ours(obj) and _MADE.get(obj.__name__) is not obj and (obj.__module__, obj.__qualname__) not in OTHERS:
        raise NotDumpable(f"{obj.__module__}.{obj.__qualname__}")
    return NotImplemented


def _way_of_values(kind: type) -> Callable[[Any], Any] | None:
    """Of a class whose objects are what they were made of: made again of that, which takes half the time."""
    if issubclass(kind, tuple):
        return lambda obj: (kind, tuple(obj))
    if not dataclasses.is_dataclass(kind) or hasattr(kind, "__post_init__"):
        return None
    fields = dataclasses.fields(kind)
    frozen = kind.__dataclass_params__.frozen  # type: ignore[attr-defined]  # a dataclass has them
    if len(fields) < 2 or not frozen or not all(field.init and not field.kw_only for field in fields):
        return None
    values = operator.attrgetter(*(field.name for field in fields))
    return lambda obj: (kind, values(obj))


class Reader(pickle.Unpickler):
    """Reads what a `Writer` wrote."""

    def __init__(self, graph: bytes | memoryview, arrays: Sequence[Array], kinds: Sequence[type]) -> None:
        super().__init__(io.BytesIO(graph))
        if not all(isinstance(kind, type) and issubclass(kind, HUBS) for kind in kinds):
            raise NotAllowed("a class that is no hub")
        self._hubs: list[Any] = [object.__new__(kind) for kind in kinds]
        self._made = {**_MADE, "array": arrays.__getitem__, "hub": self._hubs.__getitem__}

    def read(self) -> Any:
        """The root."""
        for each in self._hubs:
            _set_state(each, self.load())
        return self._hubs[0]

    def find_class(self, module: str, name: str) -> Any:
        if module == __name__ and name in self._made:
            return self._made[name]
        return allowed(module, name)


class TableReader(pickle.Unpickler):
    """Reads a pickle of plain containers and classes that a state may have."""

    def find_class(self, module: str, name: str) -> Any:
        return allowed(module, name)


def allowed(module: str, name: str) -> Any:
    """What a state may name; raises `NotAllowed` for anything else."""
    if (module, name) in OTHERS:
        return getattr(importlib.import_module(module), name)
    if module.partition(".")[0] not in PACKAGES:
        raise NotAllowed(f"{module}.{name}")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not is_ours(found):
        raise NotAllowed(f"{module}.{name}")
    return found


def _set_state(of: Any, state: Any) -> None:
    """As pickle does."""
    if hasattr(of, "__setstate__"):
        of.__setstate__(state)
        return
    slots = None
    if isinstance(state, tuple):
        state, slots = state
    if state:
        vars(of).update(state)
    for name, value in (slots or {}).items():
        setattr(of, name, value)
