"""Compiled leaf functions, and where they are kept between two runs."""

from bayesbandit.machine.caches import settle
from bayesbandit.machine.waiting import listen

settle()
listen()
