"""The studies of the paper: a file for each table or figure, found by `bayesbandit reproduce`."""
