"""Benchmarks: `make bench`, or `make bench NAME=calls` for one."""
