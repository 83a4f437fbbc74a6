"""Reading a declaration's log density: what is in it, and which rows reach it."""
