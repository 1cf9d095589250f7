"""The LLVM instructions behind `simd`, and the type of vectors of numbers. Imports Numba; see `simd`."""

from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models, register_default
from numba.extending import intrinsic

from widemargin._runtime.lanes import LANES, SHORT_LANES


class _LaneType(types.Type):
    """The Numba type of a vector of so many numbers of a type."""

    def __init__(self, number, width):
        self.number, self.width = number, width
        super().__init__(name=f"Lanes({number}, {width})")


@register_default(_LaneType)
class _LaneModel(models.PrimitiveModel):
    """Represents a _LaneType as an LLVM vector."""

    def __init__(self, manager, lane_type):
        super().__init__(manager, lane_type, _vector(lane_type))


def _vector(lane_type):
    """Return the LLVM vector of a _LaneType."""
    return ir.VectorType(ir.FloatType() if lane_type.number == types.float32 else ir.DoubleType(), lane_type.width)


def _line_pointer(context, builder, array_type, array, index, vector):
    """Return the address of array[index], a row of numbers, as a pointer to an LLVM vector."""
    data = context.make_array(array_type)(context, builder, array)
    line_bytes = builder.extract_value(data.strides, 0)
    bytes_pointer = builder.bitcast(data.data, ir.IntType(8).as_pointer())
    address = builder.gep(bytes_pointer, [builder.mul(index, line_bytes)])
    return builder.bitcast(address, vector.as_pointer())


def _zeros(panel, width):
    """Return the signature, and the function that emits so many zeros of the panel's type."""
    lane_type = _LaneType(panel.dtype, width)

    def generate(context, builder, signature, arguments):
        return ir.Constant(_vector(lane_type), None)

    return lane_type(panel), generate


@intrinsic
def zero(typing_context, panel):
    """Emit LANES zeros of the panel's type."""
    return _zeros(panel, LANES)


@intrinsic
def short_zero(typing_context, panel):
    """Emit SHORT_LANES zeros of the panel's type."""
    return _zeros(panel, SHORT_LANES)


@intrinsic
def add(typing_context, sums, x, panel, k):
    """Emit sums + x * panel[k]."""

    def generate(context, builder, signature, arguments):
        total, factor, _, index = arguments
        index = context.cast(builder, index, k, types.intp)
        vector = _vector(sums)
        line = builder.load(_line_pointer(context, builder, panel, arguments[2], index, vector))
        line.align = panel.dtype.bitwidth // 8
        first = builder.insert_element(ir.Constant(vector, ir.Undefined), factor, ir.Constant(ir.IntType(32), 0))
        places = ir.Constant(ir.VectorType(ir.IntType(32), sums.width), None)
        spread = builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), places)
        product = builder.fmul(spread, line, flags=("contract",))
        return builder.fadd(total, product, flags=("contract",))

    return sums(sums, sums.number, panel, k), generate


@intrinsic
def put(typing_context, sums, out, j):
    """Emit out[j] = sums."""

    def generate(context, builder, signature, arguments):
        index = context.cast(builder, arguments[2], j, types.intp)
        stored = builder.store(arguments[0], _line_pointer(context, builder, out, arguments[1], index, _vector(sums)))
        stored.align = out.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(sums, out, j), generate
