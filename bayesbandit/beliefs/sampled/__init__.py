"""The belief of any declared model: posterior draws, computed anew on a schedule."""
