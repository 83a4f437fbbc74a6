"""From a declaration to a posterior: which engine, and the engines."""
