"""Compiled leaf functions, and where they are kept between two runs."""

from bayesbandit.runtime.caches import settle
from bayesbandit.runtime.compile_notice import listen

settle()
listen()
