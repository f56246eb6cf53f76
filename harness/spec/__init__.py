"""Strict models of the files people write."""
