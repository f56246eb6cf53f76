"""Pure functions of a history, its verdict and its plan; ``write`` puts what they say into files."""
