"""One posterior that all arms share, by features of the arms."""
