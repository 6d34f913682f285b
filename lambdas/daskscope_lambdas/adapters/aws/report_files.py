"""Files of reports in an S3 bucket, of which CloudFront reads what is public or shown, and nothing else."""

from __future__ import annotations

import hmac
import math
import secrets
import string
from collections.abc import Callable
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from daskscope_lambdas.adapters.arguments import check_link
from daskscope_lambdas.adapters.aws.mapping import mapped
from daskscope_lambdas.isolation import SEEN_S
from daskscope_lambdas.ports import Arrived, Clock, Conflict, Missing, Taken, Upload

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

_TYPE = "text/html"
_AT_ONCE_BYTES = 32 << 20
"""What is larger is copied in such parts, several at a time."""
_SHARED_S = SEEN_S // 2
_BASE62 = string.digits + string.ascii_letters
_BESIDE = "shown"
"""What lies beside each file as its metadata, new with each copy. Whoever is told it is given the file as well, which
never changes; who is told a link alone can guess no name of what is shown."""


class S3Reports:
    """Under these keys:

    incoming/<link>                       what was brought; S3 takes it away a day later, as the bucket's rules say
    public/<link>.html                    what is kept, and private/<link>.html
    shown/<epoch s>-<22 base62>.html      a copy for who was let see a private one: CloudFront refuses it from then on,
                                          and it goes as what was brought does

    S3 takes what is brought until the offer ends, whether anybody still waits for it or not: one file at most, of the
    announced size, which nobody can see, and which goes with the rest of `incoming/`.
    """

    def __init__(self, client: Callable[[], S3Client], bucket: str, clock: Clock) -> None:
        self._client, self._bucket, self._clock = client, bucket, clock

    def offer(self, link: str, size_bytes: int, until: float) -> Upload:
        key = _brought(link)
        with self._about(key):
            post = self._client().generate_presigned_post(
                self._bucket,
                key,
                Fields={"Content-Type": _TYPE},
                Conditions=[{"Content-Type": _TYPE}, ["content-length-range", size_bytes, size_bytes]],
                ExpiresIn=math.ceil(until - self._clock.now()),
            )
        return Upload(method="POST", url=post["url"], fields=post["fields"], expires_at=until)

    def arrived(self, link: str, head_bytes: int) -> Arrived:
        key = _brought(link)
        with self._about(key):
            found = self._client().get_object(Bucket=self._bucket, Key=key)
            # What is not read is not sent: the connection goes with it.
            with closing(found["Body"]) as body:
                return Arrived(found["ContentLength"], body.read(head_bytes), found["ETag"])

    def keep(self, link: str, private: bool, version: str | None = None) -> None:
        if self._where(link) is None:
            try:
                self._copy(_brought(link), _kept(link, private), version)
            except Missing:
                if self._where(link) is None:  # nor did anybody else keep it meanwhile
                    raise
        self.discard(link)

    def discard(self, link: str) -> None:
        self._delete(_brought(link))

    def move(self, link: str, private: bool) -> None:
        kept, other = _kept(link, private), _kept(link, not private)
        if self._head(kept) is None:
            self._copy(other, kept)
        self._delete(other)

    def delete(self, link: str) -> None:
        for private in (False, True):
            self._delete(_kept(link, private))

    def address(self, link: str, private: bool, download: str | None = None) -> str:
        if download is None and not private:
            return _kept(link, private)
        found = self._where(link)
        if found is None:
            raise Missing(f"s3://{self._bucket}/{_kept(link, private)}: not there.")
        kept, secret = found
        if download is None:
            return self._show(kept, secret)
        parameters = {
            "Bucket": self._bucket,
            "Key": kept,
            "ResponseContentDisposition": f"attachment; filename*=UTF-8''{quote(download, safe='')}",
        }
        with self._about(kept):
            return self._client().generate_presigned_url("get_object", Params=parameters, ExpiresIn=SEEN_S)

    def tidy(self) -> None:
        """S3 does it, by the bucket's rules."""

    def _show(self, kept: str, secret: str) -> str:
        """The key of a copy that all share who look in the same half of SEEN_S: whoever loads a page over and over
        makes no more of them."""
        until = (math.floor(self._clock.now() / _SHARED_S) + 2) * _SHARED_S
        digest = hmac.digest(secret.encode(), f"{kept} {until}".encode(), "sha256")
        shown = f"shown/{until}-{''.join(_BASE62[byte % len(_BASE62)] for byte in digest[:22])}.html"
        if self._head(shown) is None:
            self._copy(kept, shown)
        return shown

    def _where(self, link: str) -> tuple[str, str] | None:
        """The key under which it is kept, and its secret."""
        for private in (False, True):
            if (found := self._head(key := _kept(link, private))) is not None:
                return key, found
        return None

    def _head(self, key: str) -> str | None:
        """The secret of what lies there; None if nothing does."""
        with suppress(Missing), self._about(key):
            told = self._client().head_object(Bucket=self._bucket, Key=key)
            return told["Metadata"].get(_BESIDE) or _random()
        return None

    def _copy(self, source: str, target: str, version: str | None = None) -> None:
        """Within S3, as HTML whatever it was brought as. Raises Missing; Conflict if the source is of another version,
        where one is told."""
        # Only who copies needs it, and a function starts a little sooner without.
        from s3transfer.manager import TransferConfig, TransferManager

        config = TransferConfig(multipart_threshold=_AT_ONCE_BYTES, multipart_chunksize=_AT_ONCE_BYTES)
        extra: dict[str, Any] = {"ContentType": f"{_TYPE}; charset=utf-8", "MetadataDirective": "REPLACE"}
        extra["Metadata"] = {_BESIDE: _random()}
        if version is not None:
            extra["CopySourceIfMatch"] = version
        try:
            with self._about(source), TransferManager(self._client(), config) as transfers:
                transfers.copy({"Bucket": self._bucket, "Key": source}, self._bucket, target, extra_args=extra).result()
        except Taken as error:
            raise Conflict(str(error)) from error.__cause__

    def _delete(self, key: str) -> None:
        with suppress(Missing), self._about(key):
            self._client().delete_object(Bucket=self._bucket, Key=key)

    def _about(self, key: str):
        return mapped(f"s3://{self._bucket}/{key}")


def _brought(link: str) -> str:
    check_link(link)
    return f"incoming/{link}"


def _kept(link: str, private: bool) -> str:
    check_link(link)
    return f"{'private' if private else 'public'}/{link}.html"


def _random() -> str:
    """Over 128 bits in base62."""
    return "".join(secrets.choice(_BASE62) for _ in range(22))
