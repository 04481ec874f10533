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
from numba.extending import intrinsic

from lineage.kernels import Number, inline


@inline
def address_of(array: Number) -> Number:
    return np.int64(array.ctypes.data)


def _place(builder: Any, address: Any, index: Any, bits: int) -> Any:
    pointer = builder.inttoptr(address, ir.IntType(bits).as_pointer())
    return builder.gep(pointer, [index])


@intrinsic
def _load_int64(typing: Any, address: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_place(builder, args[0], args[1], 64))

    return numba.int64(numba.int64, numba.int64), generate


@intrinsic
def _store_int64(typing: Any, address: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _place(builder, args[0], args[1], 64))
        return context.get_dummy_value()

    return numba.void(numba.int64, numba.int64, numba.int64), generate


@intrinsic
def _load_uint32(typing: Any, address: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.zext(builder.load(_place(builder, args[0], args[1], 32)), ir.IntType(64))

    return numba.int64(numba.int64, numba.int64), generate


@intrinsic
def _load_uint8(typing: Any, address: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.zext(builder.load(_place(builder, args[0], args[1], 8)), ir.IntType(64))

    return numba.int64(numba.int64, numba.int64), generate


@intrinsic
def _store_uint32(typing: Any, address: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(builder.trunc(args[2], ir.IntType(32)), _place(builder, args[0], args[1], 32))
        return context.get_dummy_value()

    return numba.void(numba.int64, numba.int64, numba.int64), generate


@intrinsic
def _prefetch(typing: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        i32, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [pointer], ir.FunctionType(ir.VoidType(), [pointer, i32, i32, i32])
        )
        # for reading, to be kept in every cache, data
        builder.call(function, [builder.inttoptr(args[0], pointer), i32(0), i32(3), i32(1)])
        return context.get_dummy_value()

    return numba.void(numba.int64), generate


@intrinsic
def _bits_of(typing: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return numba.int64(numba.float64), generate


@intrinsic
def _float_of(typing: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return numba.float64(numba.int64), generate


@intrinsic
def _move(typing: Any, array: Any, to: Any, at: Any, n: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        size = context.get_abi_sizeof(context.get_data_type(signature.args[0].dtype))
        cgutils.raw_memmove(builder, builder.gep(data, [args[1]]), builder.gep(data, [args[2]]), args[3], size)
        return context.get_dummy_value()

    return numba.void(array, numba.int64, numba.int64, numba.int64), generate


# Kernels call these: `inline` notes this file among those whose change makes compiled kernels stale.


@inline
def load_int64(address: Number, index: Number) -> Number:
    return _load_int64(address, index)


@inline
def store_int64(address: Number, index: Number, value: Number) -> None:
    _store_int64(address, index, value)


@inline
def load_uint32(address: Number, index: Number) -> Number:
    """As an int64, never negative."""
    return _load_uint32(address, index)


@inline
def load_uint8(address: Number, index: Number) -> Number:
    """As an int64, never negative."""
    return _load_uint8(address, index)


@inline
def store_uint32(address: Number, index: Number, value: Number) -> None:
    """The lower half of an int64."""
    _store_uint32(address, index, value)


@inline
def prefetch(address: Number) -> None:
    """Begin to load the cache line of an address; any address will do."""
    _prefetch(address)


@inline
def bits_of(value: Number) -> Number:
    """The IEEE bits of a float."""
    return _bits_of(value)


@inline
def float_of(bits: Number) -> Number:
    """The float with these IEEE bits."""
    return _float_of(bits)


@inline
def move(array: np.ndarray, to: Number, at: Number, n: Number) -> None:
    """Copy n entries of an array to another place in it, which may overlap the old one."""
    _move(array, to, at, n)
