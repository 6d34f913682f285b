"""Files of reports on a disk, and who may bring and see them: what S3 and CloudFront do in AWS."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from daskscope_lambdas.adapters.arguments import check_link
from daskscope_lambdas.adapters.local.disk import DiskObjects, make_folders, sync_folder
from daskscope_lambdas.adapters.local.mapping import mapped
from daskscope_lambdas.adapters.local.signing import Signer
from daskscope_lambdas.isolation import SEEN_S
from daskscope_lambdas.ports import Arrived, Clock, Conflict, Missing, Taken, Upload

UPLOADS = "api/v1/uploads"
"""Below the server's address."""
_BROUGHT_S = 86400.0
"""What nobody kept by then goes."""
_FOLDERS = ("public", "private")


class DiskReports:
    """Below `root`, which is made (mode 0700) if it is not there. Files are readable by their owner alone.

    keys/addresses           what these are signed with
    drafts/                  what is being brought
    incoming/<link>          what was brought; empty while it is awaited
    public/<link>.html       what is kept, and private/<link>.html

    Each address of a file is short-lived, also of a public one: its page gives a new one whenever somebody looks. An
    account that allows no public ones any more is obeyed by the page at once, and by addresses that were given before
    as soon as they end.
    """

    def __init__(self, root: Path, clock: Clock) -> None:
        self._root, self._clock = root, clock
        self._key: bytes | None = None
        self._signer = Signer(self._known_key, clock)
        self._drafts, self._incoming = root / "drafts", root / "incoming"
        with mapped(root):
            for folder in (self._drafts, self._incoming, *(root / name for name in _FOLDERS)):
                make_folders(folder)

    def offer(self, link: str, size_bytes: int, until: float) -> Upload:
        brought = self._brought(link)
        with mapped(brought), suppress(FileExistsError):
            brought.touch(0o600, exist_ok=False)
        url = self._signer.signed(f"{UPLOADS}/{link}", until, {"size": str(size_bytes)})
        return Upload(method="PUT", url=url, fields={}, expires_at=until)

    def arrived(self, link: str, head_bytes: int) -> Arrived:
        path = self._brought(link)
        with mapped(path), path.open("rb") as file:
            version = _version(os.fstat(file.fileno()), path)
            return Arrived(os.fstat(file.fileno()).st_size, file.read(head_bytes), version)

    def keep(self, link: str, private: bool, version: str | None = None) -> None:
        """By a second name for the same file, which fails if there is one."""
        if self._where(link) is None:
            try:
                self._keep(link, self._kept(link, private), version)
            except Missing:
                if self._where(link) is None:  # nor did anybody else keep it meanwhile
                    raise
        self.discard(link)

    def _keep(self, link: str, kept: Path, version: str | None) -> None:
        brought, aside = self._brought(link), self._drafts / secrets.token_hex(8)
        try:
            with mapped(brought):
                os.link(brought, aside)  # Under this name nobody brings another.
            if version not in (None, _version(aside.stat(), brought)):
                raise Conflict(f"{brought}: another file was brought in place of the one that was looked at.")
            with mapped(kept), suppress(FileExistsError):
                os.link(aside, kept)
                sync_folder(kept.parent)
        finally:
            _take_away(aside)

    def discard(self, link: str) -> None:
        _take_away(self._brought(link))

    def move(self, link: str, private: bool) -> None:
        kept = self._kept(link, private)
        if not kept.exists():
            other = self._kept(link, not private)
            with mapped(other):
                other.replace(kept)
                sync_folder(kept.parent)
                sync_folder(other.parent)

    def delete(self, link: str) -> None:
        for private in (False, True):
            _take_away(self._kept(link, private))

    def address(self, link: str, private: bool, download: str | None = None) -> str:
        folder = self._where(link)
        if folder is None:
            raise Missing(f"{self._kept(link, private)}: not there.")
        told = {} if download is None else {"download": download}
        return self._signer.signed(f"{folder}/{link}.html", self._clock.now() + SEEN_S, told)

    def tidy(self) -> None:
        for folder in (self._drafts, self._incoming):
            with mapped(folder):
                for path in folder.iterdir():
                    with suppress(FileNotFoundError):
                        if path.stat().st_mtime <= self._clock.now() - _BROUGHT_S:
                            path.unlink()

    def admit(self, link: str, told: Mapping[str, str]) -> int:
        self._signer.check(f"{UPLOADS}/{link}", told)
        self.check_awaited(link)
        return int(told["size"])

    def check_awaited(self, link: str) -> None:
        if self._where(link) is not None:
            raise Taken("This report is kept already: what comes after it changes nothing.")
        if not self._brought(link).exists():
            raise Missing("Nobody waits for this report any more: it was deleted, or refused. Announce it anew.")

    def draft(self) -> Path:
        with mapped(self._drafts):
            handle, path = tempfile.mkstemp(dir=self._drafts)
            os.close(handle)
        return Path(path)

    def append(self, draft: Path, part: bytes) -> None:
        with mapped(draft), draft.open("ab") as file:
            file.write(part)

    def bring(self, link: str, draft: Path) -> None:
        brought = self._brought(link)
        with mapped(brought):
            handle = os.open(draft, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
            draft.replace(brought)
            sync_folder(brought.parent)

    def find(self, path: str, told: Mapping[str, str]) -> tuple[Path, str | None]:
        self._signer.check(path, told)
        found = self._root / path
        if not found.is_file():
            raise Missing(f"{found}: not there.")
        return found, told.get("download")

    def _brought(self, link: str) -> Path:
        check_link(link)
        return self._incoming / link

    def _kept(self, link: str, private: bool) -> Path:
        check_link(link)
        return self._root / _FOLDERS[private] / f"{link}.html"

    def _where(self, link: str) -> str | None:
        """The folder that holds it."""
        return next((_FOLDERS[private] for private in (False, True) if self._kept(link, private).exists()), None)

    def _known_key(self) -> bytes:
        """One for all processes, made when first needed."""
        if self._key is None:
            keys = DiskObjects(self._root / "keys")
            with suppress(Taken):  # It is there, or another process was faster.
                keys.put_new("addresses", secrets.token_bytes(32))
            self._key = keys.get("addresses")
        return self._key


def _version(file: os.stat_result, path: Path) -> str:
    """Which file this is: no two that are brought under a link are alike in that. Raises Missing for one that is still
    awaited."""
    if not file.st_size:
        raise Missing(f"{path}: nothing was brought yet.")
    return f"{file.st_ino}-{file.st_mtime_ns}"


def _take_away(path: Path) -> None:
    with suppress(Missing), mapped(path):
        path.unlink()
        sync_folder(path.parent)
