"""What concerns the machine: files, locks, compiled code, and where it is kept."""
