"""The optimisation problems: each learning task stated as arrays, and certificates that check any solution."""

from widemargin.problems import certificates as certificates  # so that `widemargin.certificates` is found
