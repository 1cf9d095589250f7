"""A line of 32 numbers that compiled loops keep in the processor's registers.

    sums = no_lanes(panel)                     zeros, of the panel's type
    sums = add_line(sums, x, panel, k)         sums + x * panel[k], all 32 at once
    put_lanes(sums, out, j)                    out[j] = sums

Numba has no such type: sums kept in an array are loaded and stored at every step, which took four times as long. The
plain bodies below say what each verb means; compiled code gets vector instructions.
"""

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models, register_default
from numba.extending import intrinsic

from widemargin._runtime.compile import compiled_choice

LANES = 32


def no_lanes(panel):
    """Return zeros, a line as the panel's are."""
    return np.zeros(LANES, panel.dtype)


def add_line(sums, x, panel, k):
    """Return sums + x * panel[k]."""
    return sums + x * panel[k]


def put_lanes(sums, out, j):
    """Set out[j] = sums."""
    out[j] = sums


class _LaneType(types.Type):
    """Numba's type of a line of numbers."""

    def __init__(self, number):
        self.number = number
        super().__init__(name=f"Lanes({number})")


@register_default(_LaneType)
class _LaneModel(models.PrimitiveModel):
    """In machine code: a vector."""

    def __init__(self, manager, lane_type):
        super().__init__(manager, lane_type, ir.VectorType(_machine_type(lane_type.number), LANES))


def _machine_type(number):
    return ir.FloatType() if number == types.float32 else ir.DoubleType()


def _line_pointer(context, builder, array_type, array, index):
    """Return the address of array[index], a row of LANES numbers, as that of a vector."""
    data = context.make_array(array_type)(context, builder, array)
    line_bytes = builder.extract_value(data.strides, 0)
    bytes_pointer = builder.bitcast(data.data, ir.IntType(8).as_pointer())
    address = builder.gep(bytes_pointer, [builder.mul(index, line_bytes)])
    return builder.bitcast(address, ir.VectorType(_machine_type(array_type.dtype), LANES).as_pointer())


@intrinsic
def _zero(typing_context, panel):
    lane_type = _LaneType(panel.dtype)

    def generate(context, builder, signature, arguments):
        return ir.Constant(ir.VectorType(_machine_type(panel.dtype), LANES), None)

    return lane_type(panel), generate


@intrinsic
def _add(typing_context, sums, x, panel, k):
    def generate(context, builder, signature, arguments):
        total, factor, _, index = arguments
        index = context.cast(builder, index, k, types.intp)
        line = builder.load(_line_pointer(context, builder, panel, arguments[2], index))
        line.align = panel.dtype.bitwidth // 8
        vector = ir.VectorType(_machine_type(panel.dtype), LANES)
        first = builder.insert_element(ir.Constant(vector, ir.Undefined), factor, ir.Constant(ir.IntType(32), 0))
        places = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
        spread = builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), places)
        product = builder.fmul(spread, line, flags=("contract",))
        return builder.fadd(total, product, flags=("contract",))

    return sums(sums, sums.number, panel, k), generate


@intrinsic
def _put(typing_context, sums, out, j):
    def generate(context, builder, signature, arguments):
        index = context.cast(builder, arguments[2], j, types.intp)
        stored = builder.store(arguments[0], _line_pointer(context, builder, out, arguments[1], index))
        stored.align = out.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(sums, out, j), generate


@compiled_choice(no_lanes)
def _compiled_no_lanes(panel):
    return lambda panel: _zero(panel)


@compiled_choice(add_line)
def _compiled_add_line(sums, x, panel, k):
    return lambda sums, x, panel, k: _add(sums, x, panel, k)


@compiled_choice(put_lanes)
def _compiled_put_lanes(sums, out, j):
    return lambda sums, out, j: _put(sums, out, j)
