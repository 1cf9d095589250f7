"""Two classes around a random hyperplane, with noise so that it does not separate them; dense or sparse rows."""

import numpy as np
from benchopt import BaseDataset
from scipy.sparse import random as random_rows


class Dataset(BaseDataset):
    """Rows of normal numbers, or with a density below 1 sparse ones; labels are ±1."""

    name = "Simulated with noise"
    requirements = ["numpy", "scipy"]
    parameters = {
        "n_samples, n_features, density": [(500, 100, 1.0), (20_000, 50, 1.0), (5_000, 20_000, 0.005)],
        "noise": [1.0],
        "random_state": [0],
    }
    test_parameters = {"n_samples, n_features, density": [(60, 8, 1.0), (60, 40, 0.2)]}

    def get_data(self):
        """Return the rows and the labels."""
        rng = np.random.default_rng(self.random_state)
        shape = self.n_samples, self.n_features
        if self.density < 1.0:
            X = random_rows(*shape, density=self.density, format="csr", random_state=rng)
        else:
            X = rng.standard_normal(shape)
        scores = X @ rng.standard_normal(self.n_features)
        noise = self.noise * scores.std() * rng.standard_normal(self.n_samples)
        return {"X": X, "y": np.where(scores + noise > np.median(scores + noise), 1.0, -1.0)}
