"""The belief of any declared model: posterior draws that are renewed on a schedule."""
