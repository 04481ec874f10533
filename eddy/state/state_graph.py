"""The object graph of an engine's state, as a pickle that names only allowed classes and methods.

Going out, arrays are numbers (`eddy/state/state_arrays.py`), bound methods are names. Objects that know each other all round, the
**hubs**, are numbered too and their attributes written one after the other, so that a path through thousands of queries is not a
recursion.

Coming in, a name is looked up only if it is in the lists of `eddy/state/state_names.py`, classes as well as methods: whatever the
bytes are, nothing else is called. Hubs are made by their number alone: nothing in a state can call their classes.
"""

from __future__ import annotations

import dataclasses
import importlib
import io
import operator
import pickle
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from eddy.catalog.catalog import Catalog
from eddy.commit.committer import Committer
from eddy.engine import Engine
from eddy.joins.join_group import JoinGroup
from eddy.lifecycle import Lifecycle
from eddy.operators.core import JoinCore, StreamCore
from eddy.operators.shared.shared_group import SharedGroup
from eddy.operators.shared.shared_operation import SharedOperation
from eddy.operators.stage import Stage
from eddy.operators.template import Member, Template
from eddy.query import Query
from eddy.state.state_arrays import Array, Arrays
from eddy.state.state_names import METHODS, NAMES, OTHERS
from eddy.streams.legs import Leg
from eddy.streams.source import Source
from eddy.streams.timeline import Timeline

#: Classes, with those derived from them, whose objects are numbered: between two of them paths are short.
HUBS = (
    Engine, Catalog, Committer, Lifecycle, Timeline, Source, Query, Leg, JoinGroup, SharedGroup, StreamCore, JoinCore, Stage,
    Template, Member, SharedOperation,
)  # fmt: skip

#: Kinds of numbers that numpy has.
_NUMBERS = "biufmM"


class NotDumpable(Exception):
    """An object that cannot be part of a state; `what` says which."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class NotAllowed(Exception):
    """A name in a state that is not in the lists."""


def is_ours(kind: Any) -> bool:
    """Whether a class is one of ours that may be in a state."""
    return isinstance(kind, type) and (kind.__module__, kind.__qualname__) in NAMES


# What a state names where the loader has to do something; `GraphReader.find_class` gives its own.


def array(number: int) -> Array:
    raise AssertionError("the loader has the arrays")


def hub(number: int) -> object:
    raise AssertionError("the loader has the hubs")


def method(of: object, name: str) -> Callable[..., Any]:
    """A method of an object of the engine."""
    kind = next((kind for kind in type(of).__mro__ if name in vars(kind)), None)
    if kind is None or name not in _methods_of(kind):
        raise NotAllowed(f"{type(of).__name__}.{name}")
    return types.MethodType(vars(kind)[name], of)


def _methods_of(kind: type) -> list[str]:
    """The methods of a class that a state may name."""
    return METHODS.get(f"{kind.__module__}.{kind.__qualname__}", "").split()


def scalar(dtype: str, data: bytes) -> Any:
    """A numpy number of a dtype from its bytes."""
    if np.dtype(dtype).kind not in _NUMBERS:
        raise NotAllowed(f"a number of type {dtype!r}")
    return np.frombuffer(data, dtype)[0]


#: By name.
_MADE: dict[str, Callable[..., Any]] = {made.__name__: made for made in (array, hub, method, scalar)}


class GraphWriter(pickle.Pickler):
    """Writes the graph below an engine; `arrays` are the arrays it met."""

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


def _reduce_method(obj: types.MethodType) -> Any:
    name = obj.__func__.__name__
    kind = next((kind for kind in type(obj.__self__).__mro__ if name in vars(kind)), object)
    if name not in _methods_of(kind):
        raise NotDumpable(
            f"the method {name} of {kind.__module__}.{kind.__qualname__}, which eddy/state/state_names.py does not list"
        )
    return method, (obj.__self__, name)


def _check_name(obj: Any) -> Any:
    """Check that a class or function may be pickled by its name; raises `NotDumpable`."""
    if not is_ours(obj) and _MADE.get(obj.__name__) is not obj and (obj.__module__, obj.__qualname__) not in OTHERS:
        raise NotDumpable(f"{obj.__module__}.{obj.__qualname__}")
    return NotImplemented


def _way_of_values(kind: type) -> Callable[[Any], Any] | None:
    """How to pickle a class of plain values: by its constructor, which takes half the time; None for other classes."""
    if issubclass(kind, tuple):
        return lambda obj: (kind, tuple(obj))
    if not dataclasses.is_dataclass(kind) or "__dataclass_fields__" not in vars(kind) or hasattr(kind, "__post_init__"):
        return None
    fields = dataclasses.fields(kind)
    frozen = kind.__dataclass_params__.frozen  # type: ignore[attr-defined]  # a dataclass has them
    if len(fields) < 2 or not frozen or not all(field.init and not field.kw_only for field in fields):
        return None
    values = operator.attrgetter(*(field.name for field in fields))
    return lambda obj: (kind, values(obj))


class GraphReader(pickle.Unpickler):
    """Reads a graph written by `GraphWriter`."""

    def __init__(self, graph: bytes | memoryview, arrays: Sequence[Array], kinds: Sequence[object]) -> None:
        super().__init__(io.BytesIO(graph))
        self._hubs: list[Any] = [object.__new__(_hub_class(kind)) for kind in kinds]
        self._made = {**_MADE, "array": arrays.__getitem__, "hub": self._hubs.__getitem__}

    def read(self) -> Any:
        """The root object."""
        for each in self._hubs:
            _set_state(each, self.load())
        return self._hubs[0]

    def find_class(self, module: str, name: str) -> Any:
        if module == __name__ and name in self._made:
            return self._made[name]
        found = allowed(module, name)
        if isinstance(found, type) and issubclass(found, HUBS):
            raise NotAllowed(f"{module}.{name}")
        return found


class ClassName(NamedTuple):
    """A stand-in for a class, where none may be called."""

    module: str
    name: str


class PlainReader(pickle.Unpickler):
    """Reads a pickle of plain containers and class names."""

    def find_class(self, module: str, name: str) -> Any:
        return ClassName(module, name)


def _hub_class(name: object) -> type:
    """The class of a hub by its name."""
    found = allowed(*name) if isinstance(name, ClassName) else None
    if not isinstance(found, type) or not issubclass(found, HUBS):
        raise NotAllowed("a class that is no hub")
    return found


def allowed(module: str, name: str) -> Any:
    """The class or function of a name that a state may hold; raises `NotAllowed` for any other."""
    if (module, name) not in OTHERS and (module, name) not in NAMES:
        raise NotAllowed(f"{module}.{name}")
    return getattr(importlib.import_module(module), name)


def _set_state(of: Any, state: Any) -> None:
    """Set the attributes of an object as pickle does."""
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
