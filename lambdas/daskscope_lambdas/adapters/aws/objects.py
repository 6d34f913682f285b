"""ObjectStore on an S3 bucket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from daskscope_lambdas.adapters.aws.again import until_free
from daskscope_lambdas.adapters.aws.mapping import mapped
from daskscope_lambdas.adapters.keys import check_key, check_prefix
from daskscope_lambdas.ports import Missing

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client


class S3Objects:
    """An object's key is its key in the bucket.

    `get` tells Missing only to a role that may list the bucket: to any other S3 answers AccessDenied, a StoreError.
    """

    def __init__(self, client: Callable[[], S3Client], bucket: str) -> None:
        self._client, self._bucket = client, bucket

    def put_new(self, key: str, body: bytes) -> None:
        check_key(key)

        def put() -> None:
            with self._about(key):
                self._client().put_object(Bucket=self._bucket, Key=key, Body=body, IfNoneMatch="*")

        # Of two that write at once S3 may tell one to come again, whoever wins.
        until_free(put)

    def get(self, key: str) -> bytes:
        check_key(key)
        with self._about(key):
            return self._client().get_object(Bucket=self._bucket, Key=key)["Body"].read()

    def list(self, prefix: str) -> Iterator[str]:
        check_prefix(prefix)
        return self._list(prefix)

    def _list(self, prefix: str) -> Iterator[str]:
        pages = self._client().get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        with self._about(prefix):
            for page in pages:
                for found in page.get("Contents", []):
                    yield found.get("Key", "")

    def delete(self, key: str) -> None:
        check_key(key)
        with suppress(Missing), self._about(key):
            self._client().delete_object(Bucket=self._bucket, Key=key)

    def _about(self, key: str):
        return mapped(f"s3://{self._bucket}/{key}")
