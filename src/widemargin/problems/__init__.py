"""What is minimised: each task stated as arrays, and the judge of every solution."""

from widemargin.problems import certificates as certificates  # the package finds it here when it is first used
