"""Compiled leaf functions, and where they are kept between two runs."""

from bayesbandit.caches import settle

settle()
