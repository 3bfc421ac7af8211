"""Recordings of calls: the spool on the disk of the process that has the call, the store, and ways to read them."""
