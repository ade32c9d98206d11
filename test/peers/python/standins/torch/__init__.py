"""Stands in for the package `torch`, which skyrl imports for images alone; nothing of it is used for text."""
