"""What is read from a scheduler: the only code that knows Dask's internals.

A reader looks at plain attributes of the scheduler, on its event loop, and returns parts of a `wire.Message`. It never
writes to anything of Dask's, never calls back into it, and costs in proportion to what changed since it was last asked.
Where Dask's names differ between releases, the reader that needs them says so.
"""
