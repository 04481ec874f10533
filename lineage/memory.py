"""Reading and writing memory by its address, and moving it, inside kernels.

State that grows page by page is many arrays, and a kernel takes a fixed number of them. So it takes one array of page
addresses instead: word `i` of the thing is word `i & mask` of page `i >> bits`, found in constant time, and no growth ever
copies what is there. Whoever hands out an address keeps the array alive and takes the address back before letting it go;
nothing here checks.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils

from lineage.kernels import Number, inline, intrinsic, step

_LOAD = numba.int64(numba.int64, numba.int64)
_STORE = numba.void(numba.int64, numba.int64, numba.int64)


@inline
def address_of(array: Number) -> Number:
    return np.int64(array.ctypes.data)


def _place(builder: Any, args: Any, bits: int) -> Any:
    """Argument 0 is an address, argument 1 an index of words of that many bits."""
    return builder.gep(builder.inttoptr(args[0], ir.IntType(bits).as_pointer()), [args[1]])


@intrinsic
def load_int64(typing: Any, address: Any, index: Any) -> Any:
    return step(_LOAD, lambda builder, args: builder.load(_place(builder, args, 64)))


@intrinsic
def store_int64(typing: Any, address: Any, index: Any, value: Any) -> Any:
    return step(_STORE, lambda builder, args: builder.store(args[2], _place(builder, args, 64)))


@intrinsic
def load_uint32(typing: Any, address: Any, index: Any) -> Any:
    """As an int64, never negative."""
    return step(_LOAD, lambda builder, args: builder.zext(builder.load(_place(builder, args, 32)), ir.IntType(64)))


@intrinsic
def load_uint8(typing: Any, address: Any, index: Any) -> Any:
    """As an int64, never negative."""
    return step(_LOAD, lambda builder, args: builder.zext(builder.load(_place(builder, args, 8)), ir.IntType(64)))


@intrinsic
def store_uint32(typing: Any, address: Any, index: Any, value: Any) -> Any:
    """The lower half of an int64."""
    return step(_STORE, lambda builder, args: builder.store(builder.trunc(args[2], ir.IntType(32)), _place(builder, args, 32)))


@intrinsic
def prefetch(typing: Any, address: Any) -> Any:
    """Begin to load the cache line of an address; any address will do."""

    def body(builder: Any, args: Any) -> None:
        i32, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [pointer], ir.FunctionType(ir.VoidType(), [pointer, i32, i32, i32])
        )
        # for reading, to be kept in every cache, data
        builder.call(function, [builder.inttoptr(args[0], pointer), i32(0), i32(3), i32(1)])

    return step(numba.void(numba.int64), body)


@intrinsic
def bits_of(typing: Any, value: Any) -> Any:
    """The IEEE bits of a float."""
    return step(numba.int64(numba.float64), lambda builder, args: builder.bitcast(args[0], ir.IntType(64)))


@intrinsic
def float_of(typing: Any, bits: Any) -> Any:
    """The float with these IEEE bits."""
    return step(numba.float64(numba.int64), lambda builder, args: builder.bitcast(args[0], ir.DoubleType()))


@intrinsic
def move(typing: Any, array: Any, to: Any, at: Any, n: Any) -> Any:
    """Copy n entries of an array to another place in it, which may overlap the old one."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        size = context.get_abi_sizeof(context.get_data_type(signature.args[0].dtype))
        cgutils.raw_memmove(builder, builder.gep(data, [args[1]]), builder.gep(data, [args[2]]), args[3], size)
        return context.get_dummy_value()

    return numba.void(array, numba.int64, numba.int64, numba.int64), generate
