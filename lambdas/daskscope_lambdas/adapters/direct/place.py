"""Where a lake is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit
from urllib.request import url2pathname

import pyarrow as pa
import pyarrow.fs as pafs

from daskscope_lambdas.adapters.direct.mapping import mapped
from daskscope_lambdas.ports import Missing
from daskscope_query import layout


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that pyarrow reaches. `root` is its path or URI, `path` the same with a slash, as `files` wants it."""

    root: str
    files: pafs.FileSystem
    path: str

    @classmethod
    def at(cls, root: str, told: Mapping[str, str]) -> Place:
        """`root`: a path, or a URI to what pyarrow opens. `told`: what an S3 URI is to say, where it does not yet.

        Raises ValueError for what pyarrow does not open, StoreError.
        """
        parts = urlsplit(root)
        if "://" not in root or parts.scheme == "file":
            path = Path(url2pathname(parts.path) if parts.scheme == "file" else root).expanduser().absolute()
            return cls(str(path), pafs.LocalFileSystem(), f"{path}/")
        if parts.scheme == "s3":
            query = urlencode({**told, **dict(parse_qsl(parts.query))})
            root = parts._replace(path=parts.path.rstrip("/"), query=query).geturl()
        with mapped(root):
            try:
                files, path = pafs.FileSystem.from_uri(root)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise ValueError(str(error)) from error
        return cls(root, files, path.rstrip("/") + "/")

    def named(self) -> str:
        """As a person would write it."""
        return urlsplit(self.root)._replace(query="").geturl() if "://" in self.root else self.root

    def lake(self) -> Place:
        """The lake in it, where it is a server's data folder; else itself. Raises Missing if there is nothing."""
        parts = urlsplit(self.root)
        joined = f"{parts.path.rstrip('/')}/lake"
        inner = parts._replace(path=joined).geturl() if "://" in self.root else str(Path(self.root) / "lake")
        with mapped(self.named()):
            own, lake = self.files.get_file_info([self.path.rstrip("/"), f"{self.path}lake"])
        if lake.type == pafs.FileType.Directory:
            return Place(inner, self.files, f"{self.path}lake/")
        if own.type != pafs.FileType.Directory:
            raise Missing(f"{self.named()}: no such folder.")
        return self

    def folders(self, key: str) -> list[str]:
        """Names of the folders right below `key`, sorted; none if it is not there. Raises StoreError."""
        return sorted(info.base_name for info in self._below(key) if info.type == pafs.FileType.Directory)

    def names(self, key: str) -> list[str]:
        """As `folders`, of files."""
        return sorted(info.base_name for info in self._below(key) if info.is_file)

    def has(self, key: str) -> bool:
        """Whether there is a file. Raises StoreError."""
        with mapped(f"{self.named()}/{key}"):
            return self.files.get_file_info(self.path + key).is_file

    def read(self, key: str) -> bytes:
        """Raises Missing, StoreError."""
        with mapped(f"{self.named()}/{key}"), self.files.open_input_file(self.path + key) as file:
            return file.read()

    def accounts(self) -> list[str]:
        """Those that have a catalog or a sealed day. Raises StoreError."""
        tables = [f"{layout.SEALED}{name}/" for name in self.folders(layout.SEALED)]
        names = (name for key in (layout.CATALOG, *tables) for name in self.folders(key))
        return sorted({account for name in names if (account := layout.account_in(f"/{name}/"))})

    def _below(self, key: str) -> list[pafs.FileInfo]:
        with mapped(f"{self.named()}/{key}"):
            return self.files.get_file_info(pafs.FileSelector(self.path + key.rstrip("/"), allow_not_found=True))
