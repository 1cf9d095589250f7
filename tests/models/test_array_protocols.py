"""Rows from other array libraries: DLPack on the CPU is taken without a copy, other memory is refused by name."""

import numpy as np
import pytest

from widemargin import SVC, LinearSVC, LinearSVR, RankSVM


class OnlyDLPack:
    """An array that speaks DLPack and nothing else, as the array API requires it."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OnAnotherDevice(OnlyDLPack):
    """An array in the memory of a GPU."""

    def __dlpack__(self, **options):
        raise BufferError("Unsupported device in DLTensor")

    def __dlpack_device__(self):
        return 2, 0


@pytest.mark.parametrize("estimator", [LinearSVC(random_state=0), SVC(), LinearSVR(random_state=0), RankSVM()])
def test_dlpack_on_the_cpu_is_the_array(clouds, estimator):
    X, y, _ = clouds
    expected = estimator.fit(X, y).predict(X)
    model = estimator.fit(OnlyDLPack(X), OnlyDLPack(y))
    np.testing.assert_array_equal(model.predict(OnlyDLPack(X)), expected)


def test_memory_of_other_devices_is_refused_by_name(clouds):
    X, y, _ = clouds
    with pytest.raises(TypeError, match="X must be in the memory of the CPU, got a OnAnotherDevice"):
        LinearSVC().fit(OnAnotherDevice(X), y)
    with pytest.raises(TypeError, match="y must be in the memory of the CPU"):
        LinearSVC().fit(X, OnAnotherDevice(y))
