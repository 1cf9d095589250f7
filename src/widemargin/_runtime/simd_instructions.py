"""The LLVM instructions behind `simd`, and the type of vectors of numbers. Imports Numba; see `simd`."""

from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models, register_default
from numba.extending import intrinsic

from widemargin._runtime.lanes import BLOCK, FEW_LANES, LANES, SHORT_LANES

_FUSED = ("contract",)  # LLVM may fuse a product and a sum, which rounds once


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


def _spread(builder, number, vector):
    """Return an LLVM vector of equal numbers."""
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), None)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), places)


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
def few_zeros(typing_context, panel):
    """Emit FEW_LANES zeros of the panel's type."""
    return _zeros(panel, FEW_LANES)


@intrinsic
def add(typing_context, sums, x, panel, k):
    """Emit sums + x * panel[k]."""

    def generate(context, builder, signature, arguments):
        total, factor, _, index = arguments
        index = context.cast(builder, index, k, types.intp)
        vector = _vector(sums)
        line = builder.load(_line_pointer(context, builder, panel, arguments[2], index, vector))
        line.align = panel.dtype.bitwidth // 8
        product = builder.fmul(_spread(builder, factor, vector), line, flags=_FUSED)
        return builder.fadd(total, product, flags=_FUSED)

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


@intrinsic
def transpose(typing_context, source, corner, out, slots, place):
    """Emit out[slots[b + i], place + k] = source[j + k, b + i] for i and k below BLOCK, with (j, b) = corner."""

    def generate(context, builder, signature, arguments):
        vectors = Vectors(builder, source.dtype, BLOCK)
        row, column = (
            context.cast(builder, builder.extract_value(arguments[1], k), corner.types[k], types.intp) for k in range(2)
        )
        at = context.cast(builder, arguments[4], place, types.intp)
        slot_data = context.make_array(slots)(context, builder, arguments[3]).data
        lines = [
            vectors.load_line(context, source, arguments[0], builder.add(row, _index_of(k)), column)
            for k in range(BLOCK)
        ]
        for i, line in enumerate(_transposed(builder, lines)):
            slot = builder.load(builder.gep(slot_data, [builder.add(column, _index_of(i))]))
            vectors.store_line(context, out, arguments[2], slot, at, line)
        return context.get_dummy_value()

    if source.dtype != out.dtype or slots.dtype != types.int64:
        raise TypeError(f"Blocks are transposed to arrays of the same type, with slots of int64, got {out}, {slots}.")
    return types.void(source, corner, out, slots, place), generate


def _index_of(number):
    """Return an index that is known now."""
    return ir.Constant(ir.IntType(64), number)


def _transposed(builder, lines):
    """Return the columns of a square block whose lines are LLVM vectors: halves, quarters, ... change their places."""
    lines, width = list(lines), len(lines)
    step = width // 2
    while step:
        masks = [
            [place if not place & step else place - step + width for place in range(width)],
            [place + step if not place & step else place + width for place in range(width)],
        ]
        masks = [ir.Constant(ir.VectorType(ir.IntType(32), width), mask) for mask in masks]
        for i in [i for i in range(width) if not i & step]:
            pair = lines[i], lines[i + step]
            lines[i], lines[i + step] = (builder.shuffle_vector(*pair, mask) for mask in masks)
        step //= 2
    return lines


class Vectors:
    """Emits arithmetic with vectors of so many numbers of a type; products and sums may be fused.

    Parameters
    ----------
    builder : llvmlite.ir.IRBuilder
    number : Numba type, float32 or float64
    width : int
        How many numbers a vector has.
    """

    def __init__(self, builder, number, width):
        self.builder, self.number, self._type = builder, number, _vector(_LaneType(number, width))

    def constant(self, value):
        """Return a vector of equal numbers that are known now."""
        return ir.Constant(self._type, [value] * self._type.count)

    def spread(self, number):
        """Return a vector of equal numbers."""
        return _spread(self.builder, number, self._type)

    def load(self, context, array_type, array, place):
        """Return the numbers of a contiguous array from a place on."""
        numbers = self.builder.load(self._address(context, array_type, array, place))
        numbers.align = array_type.dtype.bitwidth // 8
        return numbers

    def store(self, context, array_type, array, place, numbers):
        """Put a vector into a contiguous array from a place on."""
        stored = self.builder.store(numbers, self._address(context, array_type, array, place))
        stored.align = array_type.dtype.bitwidth // 8

    def converted(self, numbers, number):
        """Return a vector as one of another type of numbers."""
        wanted = _vector(_LaneType(number, self._type.count))
        if number.bitwidth > self.number.bitwidth:
            return self.builder.fpext(numbers, wanted)
        return self.builder.fptrunc(numbers, wanted) if number.bitwidth < self.number.bitwidth else numbers

    def load_line(self, context, array_type, array, row, place):
        """Return the numbers of a row of a contiguous array from a place on."""
        numbers = self.builder.load(self._address_in_row(context, array_type, array, row, place))
        numbers.align = array_type.dtype.bitwidth // 8
        return numbers

    def store_line(self, context, array_type, array, row, place, numbers):
        """Put a vector into a row of a contiguous array from a place on."""
        stored = self.builder.store(numbers, self._address_in_row(context, array_type, array, row, place))
        stored.align = array_type.dtype.bitwidth // 8

    def _address_in_row(self, context, array_type, array, row, place):
        n_columns = self.builder.extract_value(context.make_array(array_type)(context, self.builder, array).shape, 1)
        place = self.builder.add(self.builder.mul(row, n_columns), place)
        return self._address(context, array_type, array, place)

    def _address(self, context, array_type, array, place):
        if array_type.layout != "C":
            raise TypeError(f"Only contiguous arrays are read and written by vectors, got {array_type}.")
        data = context.make_array(array_type)(context, self.builder, array).data
        return self.builder.bitcast(self.builder.gep(data, [place]), self._type.as_pointer())

    def add(self, a, b):
        """Return a + b."""
        return self.builder.fadd(a, b, flags=_FUSED)

    def subtract(self, a, b):
        """Return a − b."""
        return self.builder.fsub(a, b, flags=_FUSED)

    def multiply(self, a, b):
        """Return a b."""
        return self.builder.fmul(a, b, flags=_FUSED)

    def multiply_add(self, a, b, c):
        """Return a b + c."""
        return self.add(self.multiply(a, b), c)

    def smaller(self, a, b):
        """Return a where it is less than b, else b."""
        return self.builder.select(self.builder.fcmp_ordered("<", a, b), a, b)

    def larger(self, a, b):
        """Return b where a is less than b, else a."""
        return self.builder.select(self.builder.fcmp_ordered("<", a, b), b, a)

    def shifted_bits(self, a, n_bits):
        """Return the numbers whose bits are those of a shifted left by n_bits."""
        integers = ir.VectorType(ir.IntType(self.number.bitwidth), self._type.count)
        count = ir.Constant(integers, [n_bits] * self._type.count)
        return self.builder.bitcast(self.builder.shl(self.builder.bitcast(a, integers), count), self._type)
