"""Files of reports in an S3 bucket, of which CloudFront reads what is public or shown, and nothing else."""

from __future__ import annotations

import math
import secrets
import string
from collections.abc import Callable
from contextlib import closing, suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

from daskscope_lambdas.adapters.arguments import check_link
from daskscope_lambdas.adapters.aws.mapping import mapped
from daskscope_lambdas.isolation import SEEN_S
from daskscope_lambdas.ports import Clock, Missing, Upload

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

_TYPE = "text/html"
_AT_ONCE_BYTES = 32 << 20
"""What is larger is copied in such parts, several at a time."""


class S3Reports:
    """Under these keys:

    incoming/<link>                       what was brought; S3 takes it away a day later, as the bucket's rules say
    public/<link>.html                    what is kept, and private/<link>.html
    shown/<epoch s>-<22 base62>.html      a copy for who was let see a private one: CloudFront refuses it from then on,
                                          and it goes as what was brought does
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

    def arrived(self, link: str, head_bytes: int) -> tuple[int, bytes]:
        key = _brought(link)
        with self._about(key):
            found = self._client().get_object(Bucket=self._bucket, Key=key)
            # What is not read is not sent: the connection goes with it.
            with closing(found["Body"]) as body:
                return found["ContentLength"], body.read(head_bytes)

    def keep(self, link: str, private: bool) -> None:
        if self._where(link) is None:
            self._copy(_brought(link), _kept(link, private))
        self.discard(link)

    def discard(self, link: str) -> None:
        self._delete(_brought(link))

    def move(self, link: str, private: bool) -> None:
        kept, other = _kept(link, private), _kept(link, not private)
        if not self._is_there(kept):
            self._copy(other, kept)
        self._delete(other)

    def delete(self, link: str) -> None:
        for private in (False, True):
            self._delete(_kept(link, private))

    def address(self, link: str, private: bool, download: str | None = None) -> str:
        if download is None and not private:
            return _kept(link, private)
        kept = self._where(link)
        if kept is None:
            raise Missing(f"s3://{self._bucket}/{_kept(link, private)}: not there.")
        if download is None:
            shown = f"shown/{math.ceil(self._clock.now() + SEEN_S)}-{_random()}.html"
            self._copy(kept, shown)
            return shown
        parameters = {
            "Bucket": self._bucket,
            "Key": kept,
            "ResponseContentDisposition": f"attachment; filename*=UTF-8''{quote(download, safe='')}",
        }
        with self._about(kept):
            return self._client().generate_presigned_url("get_object", Params=parameters, ExpiresIn=SEEN_S)

    def tidy(self) -> None:
        """S3 does it, by the bucket's rules."""

    def _where(self, link: str) -> str | None:
        """The key under which it is kept."""
        return next((key for private in (False, True) if self._is_there(key := _kept(link, private))), None)

    def _is_there(self, key: str) -> bool:
        with suppress(Missing), self._about(key):
            self._client().head_object(Bucket=self._bucket, Key=key)
            return True
        return False

    def _copy(self, source: str, target: str) -> None:
        """Within S3, as HTML whatever it was brought as. Raises Missing."""
        # Only who copies needs it, and a function starts a little sooner without.
        from s3transfer.manager import TransferConfig, TransferManager

        config = TransferConfig(multipart_threshold=_AT_ONCE_BYTES, multipart_chunksize=_AT_ONCE_BYTES)
        extra = {"ContentType": f"{_TYPE}; charset=utf-8", "MetadataDirective": "REPLACE"}
        with self._about(source), TransferManager(self._client(), config) as transfers:
            transfers.copy({"Bucket": self._bucket, "Key": source}, self._bucket, target, extra_args=extra).result()

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
    alphabet = string.digits + string.ascii_letters
    return "".join(secrets.choice(alphabet) for _ in range(22))
