"""The belief of any declared model: posterior draws, weighted by rewards until they are renewed."""
