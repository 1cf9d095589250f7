"""What is minimised: each task stated as arrays, and the judge of every solution."""
