"""The LLVM instructions behind `simd`, and the type of vectors of LANES numbers. Imports Numba; see `simd`."""

from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models, register_default
from numba.extending import intrinsic

from widemargin._runtime.lanes import LANES


class _LaneType(types.Type):
    """The Numba type of a vector of LANES numbers."""

    def __init__(self, number):
        self.number = number
        super().__init__(name=f"Lanes({number})")


@register_default(_LaneType)
class _LaneModel(models.PrimitiveModel):
    """Represents a _LaneType as an LLVM vector."""

    def __init__(self, manager, lane_type):
        super().__init__(manager, lane_type, ir.VectorType(_machine_type(lane_type.number), LANES))


def _machine_type(number):
    return ir.FloatType() if number == types.float32 else ir.DoubleType()


def _line_pointer(context, builder, array_type, array, index):
    """Return the address of array[index], a row of LANES numbers, as a pointer to an LLVM vector."""
    data = context.make_array(array_type)(context, builder, array)
    line_bytes = builder.extract_value(data.strides, 0)
    bytes_pointer = builder.bitcast(data.data, ir.IntType(8).as_pointer())
    address = builder.gep(bytes_pointer, [builder.mul(index, line_bytes)])
    return builder.bitcast(address, ir.VectorType(_machine_type(array_type.dtype), LANES).as_pointer())


@intrinsic
def zero(typing_context, panel):
    """Emit LANES zeros of the panel's type."""
    lane_type = _LaneType(panel.dtype)

    def generate(context, builder, signature, arguments):
        return ir.Constant(ir.VectorType(_machine_type(panel.dtype), LANES), None)

    return lane_type(panel), generate


@intrinsic
def add(typing_context, sums, x, panel, k):
    """Emit sums + x * panel[k]."""

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
def put(typing_context, sums, out, j):
    """Emit out[j] = sums."""

    def generate(context, builder, signature, arguments):
        index = context.cast(builder, arguments[2], j, types.intp)
        stored = builder.store(arguments[0], _line_pointer(context, builder, out, arguments[1], index))
        stored.align = out.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(sums, out, j), generate
