"""ObjectStore on a lake that is only read."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.fs as pafs

from daskscope_lambdas.adapters.direct.mapping import mapped, refuse
from daskscope_lambdas.adapters.direct.place import Place
from daskscope_lambdas.adapters.keys import check_key, check_prefix


class LakeObjects:
    """An object's key is its path below the lake."""

    put_new = delete = staticmethod(refuse)

    def __init__(self, place: Place) -> None:
        self._place = place

    def get(self, key: str) -> bytes:
        check_key(key)
        return self._place.read(key)

    def list(self, prefix: str) -> Iterator[str]:
        check_prefix(prefix)
        place = self._place
        folder = prefix.rpartition("/")[0]
        selector = pafs.FileSelector(place.path + folder, allow_not_found=True, recursive=True)
        with mapped(f"{place.named()}/{folder}"):
            found = place.files.get_file_info(selector)
        keys = (info.path[len(place.path) :] for info in found if info.is_file)
        return iter(sorted(key for key in keys if key.startswith(prefix)))
