"""Bootstrap LASSO and ridge: regressions on resampled rounds."""
