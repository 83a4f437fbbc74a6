"""SuperLinUCB and SuperBLUCB: levels of certainty."""
