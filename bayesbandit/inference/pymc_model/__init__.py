"""Functions of a built PyMC model: digest, prior draws, likelihood, mean rewards."""
