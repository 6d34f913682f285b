"""What is read from a scheduler: the only code that knows Dask's internals.

A reader looks at plain attributes of the scheduler, on its event loop, and returns parts of a `wire.Message`. It costs
in proportion to what changed since it was last asked, and leaves Dask alone, with these exceptions, which are undone at
the end: topics of events that are read have longer memories (`topics`), agents have a topic of their own (`mailbox`),
`adaptive_target` is asked once a minute (`adaptive`), log records are listened to (`logs`), and where a setting asks
for rows of tasks, the two handlers of ended tasks are wrapped (`tasks`).
Where Dask's names differ between releases, the reader that needs them says so.
"""
