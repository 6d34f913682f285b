"""JSON objects as few bytes: deflated, with a dictionary of what stands in all of them.

A message writes its cluster's whole item, and DynamoDB counts a write in units of 1 KiB: plain, an item needs two.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

_WORDS: dict[bytes, bytes] = {
    b"\x01": (
        b'{"team":"","project":"","env":"prod"}}{"scheduler":"spans":"p2p":"memcpy":"retire":"ensure-communicating"'
        b'","platform":"Darwin Windows Linux x86_64","tags":{},"plugin_version":"0.'
        b'"zarr":"","xarray":"","toolz":"1.","lz4":"4.","pyarrow":"2","pandas":"2.","numpy":"2.","cloudpickle":"3.1.'
        b'"msgpack":"1.1.","tornado":"6.5","python":"3.1","versions":{"dask":"2026.","distributed":"2026.'
        b'{"scheduler_id":"Scheduler-","name":"","user":"","host":"ip-10-0-.compute.internal","address":"tcp://10.0.'
        b':8786","dashboard":"http://10.0.:8787/status","started_at_ms":17'
        b'{"n_workers":1,"n_threads":4,"n_clients":1,"memory_bytes":0,"managed_bytes":0,"spilled_bytes":0,'
        b'"memory_limit_bytes":0,"waiting":0,"queued":0,"no_worker":0,"processing":0,"in_memory":0,"erred":0,'
        b'"held_bytes":0,"idle_since_ms":null,"idle_timeout_us":null,"n_computations":0,"n_groups":0,"n_tasks":0,'
        b'"n_tasks_erred":0,"thread_us":0,"action_us":{"deserialize":"disk-write":"disk-read":"transfer":"compute":'
        b'},"peak_memory_bytes":0,"peak_workers":0}'
    )
}
"""By the first byte of what was made with them. They never change: another choice is another first byte."""
_NOW = b"\x01"


def pack(value: dict[str, Any]) -> bytes:
    """Raises ValueError for what is no JSON."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=_WORDS[_NOW])
    return _NOW + squeeze.compress(text.encode()) + squeeze.flush()


def unpack(packed: bytes) -> dict[str, Any]:
    """What `pack` was given."""
    return json.loads(zlib.decompressobj(-zlib.MAX_WBITS, zdict=_WORDS[packed[:1]]).decompress(packed[1:]))
