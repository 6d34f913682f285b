"""What Dask tells only since some release: docs/reference/support.md says the same."""

from __future__ import annotations

from importlib.metadata import version

from packaging.version import Version

_HERE = Version(version("distributed"))

SAYS_LOST_RESULTS = Version("2024.3.0") <= _HERE
"""Which results went with a worker."""
SAYS_NANNY_KILLED = Version("2024.4.2") <= _HERE
"""That a nanny ended its worker for its memory, and how much that was."""
SAYS_COLLECTIONS = Version("2024.5.2") <= _HERE
"""What a span computed."""
