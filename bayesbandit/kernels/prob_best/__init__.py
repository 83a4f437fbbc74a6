"""Which arm is best, and how often, by draws of the arms' mean rewards."""
