"""Numba kernels: declared with their signature, compiled together at set-up, cached on disk.

A kernel takes arrays and numbers, returns numbers or fills arrays it was given, holds no state and never calls Python. It
allocates nothing, so numba's reference counts are switched off: they would cost 80 ns for each array of a call, and an atomic
operation for each array that a helper inside a loop is given. The caller holds every array as long as the call takes.

A kernel takes at most 16 arguments, or says beside it why more. What the shape of an array tells is not an argument. Arrays that
always come together are one plain tuple. The kernel unpacks it, or makes a NamedTuple of it for its helpers: inside, names cost
nothing. A NamedTuple from outside is dear. Nanoseconds of a call, by the number of its arrays:

    arrays                   4      8     13     24
    arguments              189    250    331    541
    one tuple              272    409    557    970
    one NamedTuple         854   1076   1394   2143

`@kernel("void(int64[::1])")` declares one. `compile_kernels()` compiles every kernel declared so far that is not in the cache,
and forbids further compilation: an array of the wrong type is an error at once, not a pause of seconds in somebody's first push.
A kernel that is in the cache is loaded with its first call, which takes milliseconds: a program that starts needs few of them.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

import numba
import numba.extending
import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

#: A number inside a kernel: numba, not mypy, decides its type.
Number = Any

#: A signature as numba writes it, or built from numba's types where its text cannot say it (read-only arrays).
Signature = Any

#: The type of int64 arrays that may be read-only, as users' arrays may.
READ_ONLY_INT64 = numba.types.Array(numba.types.int64, 1, "C", readonly=True)

#: How kernels and their helpers are compiled; the last: without reference counts.
OPTIONS: dict[str, Any] = {"nogil": True, "boundscheck": False, "_nrt": False}

_declared: list[tuple[Any, Signature]] = []
_compiled = 0
#: held while a kernel is loaded: engines of several threads may call it for the first time
_loading = threading.Lock()


def kernel(signature: Signature) -> Callable[[F], F]:
    """Declare a kernel with its one signature."""

    def declare(function: F) -> F:
        dispatcher: Any = numba.njit(cache=True, **OPTIONS)(function)
        _declared.append((dispatcher, signature))
        return dispatcher  # type: ignore[no-any-return]  # numba has no types; the kernel keeps its function's

    return declare


def inline(function: F) -> F:
    """A helper that kernels call; its code is put into theirs, for passing arrays to a function costs more than most helpers."""
    dispatcher: Any = numba.njit(inline="always", **OPTIONS)(function)
    return dispatcher  # type: ignore[no-any-return]  # as above


def called(function: F) -> F:
    """A helper that kernels call and that stays one function: too large to be put into each of them."""
    dispatcher: Any = numba.njit(**OPTIONS)(function)
    return dispatcher  # type: ignore[no-any-return]  # as above


def intrinsic(function: Callable[..., Any]) -> Any:
    """A step of generated code that kernels call; `function` gives its signature, by the types of its arguments, and its code."""
    return numba.extending.intrinsic(function)


def step(signature: Signature, body: Callable[[Any, Any], Any]) -> tuple[Signature, Callable[..., Any]]:
    """The signature of an intrinsic and its code, which `body(builder, args)` writes; its result counts unless that is void."""

    def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
        found = body(builder, args)
        return context.get_dummy_value() if signature.return_type == numba.void else found

    return signature, generate


def compile_kernels(announce: Callable[[str], None], progress: Callable[[int, int], None] = lambda done, total: None) -> int:
    """Compile every declared kernel that is not in the cache; says so once if there is one, and then of each how many are done.

    Returns how many were compiled.
    """
    global _compiled
    fresh = 0
    stamps: dict[Callable[..., Any], str] = {}
    for done, (dispatcher, signature) in enumerate(_declared[_compiled:], 1):
        # numba's cache looks at a kernel's own file only, but kernels call helpers of other files
        dispatcher._cache._cache_file._source_stamp = f"{OPTIONS} {_stamp(dispatcher.py_func, stamps)}"
        types = numba.core.sigutils.normalize_signature(signature)[0]
        if _is_cached(dispatcher, types):
            # what numba calls where no compiled form fits the arguments
            dispatcher._compile_for_args = partial(_load, dispatcher, types)
            continue
        if not fresh:
            announce("compiling kernels for this machine; this takes a minute or two, once")
        dispatcher.compile(types)
        dispatcher.disable_compile()
        fresh += 1
        progress(_compiled + done, len(_declared))
    _compiled = len(_declared)
    return fresh


def _stamp(function: Callable[..., Any], known: dict[Callable[..., Any], str]) -> str:
    """A hash of all that a kernel's machine code is made of: its function, those it reaches, and the values they read.

    It looks at no path and no time, so compiled code is good in every checkout that has the same functions. `known` keeps the
    hashes of functions met before.
    """
    if function not in known:
        known[function] = ""  # where it reaches itself
        names: set[str] = set()
        parts = _parts(function.__code__, names)
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        values = {name: cell.cell_contents for name, cell in cells}
        values |= {name: function.__globals__[name] for name in names if name in function.__globals__}
        parts += [f"{name}={_describe(values[name], known)}" for name in sorted(values)]
        known[function] = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return known[function]


def _parts(code: CodeType, names: set[str]) -> list[str]:
    """The instructions and constants of a function and of those inside it, as texts; adds the names that they look up."""
    names.update(code.co_names)
    parts = [code.co_code.hex(), repr(code.co_names), repr(code.co_varnames)]
    for constant in code.co_consts:
        parts += _parts(constant, names) if isinstance(constant, CodeType) else [repr(constant)]
    return parts


def _describe(value: Any, known: dict[Callable[..., Any], str]) -> str:
    """A value that compiled code may hold, as a text that is the same in every process."""
    # a dispatcher's function, an intrinsic's
    function = getattr(value, "py_func", getattr(value, "_defn", value))
    if isinstance(function, FunctionType):
        return _stamp(function, known)
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    if isinstance(value, type):
        methods = [_stamp(method, known) for method in vars(value).values() if isinstance(method, FunctionType)]
        return f"{value.__name__} {getattr(value, '_fields', methods)}"
    return value.__name__ if isinstance(value, ModuleType) else f"{type(value).__name__} {value}"


def _is_cached(dispatcher: Any, types: tuple[Any, ...]) -> bool:
    """Whether a kernel's compiled form is on disk for this source and CPU (numba keeps no public test for it)."""
    cache = dispatcher._cache
    return cache._index_key(types, dispatcher.targetctx.codegen()) in cache._cache_file._load_index()


def _load(dispatcher: Any, types: tuple[Any, ...], *args: Any) -> Any:
    """Load a kernel from the cache for its first call, and return its entry; raises `TypeError` if the arguments do not fit."""
    given = [dispatcher.typeof_pyval(value) for value in args]
    converts = dispatcher.typingctx.can_convert
    if len(given) != len(types) or any(converts(one, wanted) is None for one, wanted in zip(given, types)):
        shown = ", ".join(map(str, given))
        raise TypeError(f"No matching definition for argument type(s) {shown} of {dispatcher.__name__}")
    with _loading:
        if types not in dispatcher.overloads:
            dispatcher.compile(types)
            dispatcher.disable_compile()
    return dispatcher.overloads[types].entry_point
