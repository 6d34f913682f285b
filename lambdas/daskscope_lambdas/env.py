"""Environment of the functions: names and typed settings. Standard library only, for the infrastructure imports it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal
from urllib.parse import urlencode, urlsplit

WORLD = "DASKSCOPE_WORLD"
DATA = "DASKSCOPE_DATA"
PAGES = "DASKSCOPE_PAGES"
ADDRESS = "DASKSCOPE_ADDRESS"
REPORTS = "DASKSCOPE_REPORTS"
REPORTS_BUCKET = "DASKSCOPE_REPORTS_BUCKET"
BUCKET = "DASKSCOPE_BUCKET"
TABLE = "DASKSCOPE_TABLE"
QUEUE_URL = "DASKSCOPE_QUEUE_URL"
KEYS = "DASKSCOPE_KEYS"
KEYS_KMS_KEY = "DASKSCOPE_KEYS_KMS_KEY"
AWS_ENDPOINT_URL = "AWS_ENDPOINT_URL"
"""Where boto3 finds AWS, if not where it always is: pyarrow does not look there, so that `lake` hands it on."""
AWS_REGION = "AWS_REGION"
"""Lambda says it to each function; `lake` hands it on, else pyarrow asks S3 for it whenever a function starts."""

Pages = Literal["open", "login"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEnv:
    """One machine."""

    world: ClassVar[Literal["local"]] = "local"
    data: str
    """Folder of the embedded server's files."""
    pages: Pages = "login"
    """Whether pages may be read without a login: only where nobody but this machine can ask."""
    address: str = ""
    """Where people reach it, if a proxy stands before it: `https://daskscope.example.org`; empty for as they asked."""
    reports: str = ""
    """The origin of reports and of nothing else: a URL without a slash at its end, `:8791` for that port of the host
    that was asked, or empty where none is served."""

    @property
    def lake(self) -> str:
        """Root of the lake, as a path or URI that pyarrow opens."""
        return str(Path(self.data) / "lake")

    def variables(self) -> dict[str, str]:
        """What `read` reads this from."""
        told = {WORLD: self.world, DATA: self.data, PAGES: self.pages}
        return told | {name: text for name, text in ((ADDRESS, self.address), (REPORTS, self.reports)) if text}


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsEnv:
    """An AWS account; credentials and region are boto3's business."""

    world: ClassVar[Literal["aws"]] = "aws"
    pages: ClassVar[Pages] = "login"
    address: ClassVar[str] = ""
    bucket: str
    """S3 bucket of the lake."""
    table: str
    """DynamoDB table of the registry, shaped as registry.py says."""
    queue_url: str
    """SQS queue of what ingest took."""
    keys: str
    """Path in the SSM Parameter Store under which accounts' keys lie: `/daskscope/<stack>/<its uuid>/keys`."""
    keys_kms_key: str = ""
    """KMS key id or ARN that encrypts those; empty for AWS's own `aws/ssm`."""
    reports_bucket: str = ""
    """S3 bucket of the reports that somebody keeps here; empty where none are kept."""
    reports: str = ""
    """The origin of reports and of nothing else: a URL without a slash at its end; empty where none is served."""
    endpoint_url: str = ""
    """As AWS_ENDPOINT_URL; empty for AWS itself."""
    region: str = ""
    """As AWS_REGION; may be empty."""

    @property
    def lake(self) -> str:
        """Root of the lake, as a URI that pyarrow opens."""
        known = urlencode(s3_options(self.region, self.endpoint_url))
        return f"s3://{self.bucket}" + (f"?{known}" if known else "")

    def variables(self) -> dict[str, str]:
        """What `read` reads this from, but for endpoint and region, which are the machine's and not the function's."""
        named = {BUCKET: self.bucket, TABLE: self.table, QUEUE_URL: self.queue_url, KEYS: self.keys}
        may_be = {KEYS_KMS_KEY: self.keys_kms_key, REPORTS_BUCKET: self.reports_bucket, REPORTS: self.reports}
        return {WORLD: self.world, **named} | {name: text for name, text in may_be.items() if text}


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectEnv:
    """A lake where it lies, which its reader's own process reads."""

    world: ClassVar[Literal["direct"]] = "direct"
    pages: ClassVar[Pages] = "login"
    address: ClassVar[str] = ""
    reports: ClassVar[str] = ""
    lake: str
    """Its root, as a path or URI that pyarrow opens."""
    account: str
    keys: str | None = None
    """A folder with the key to the account's code, or `ssm:` and a path in the SSM Parameter Store; None for none."""


FunctionEnv = LocalEnv | AwsEnv
"""What functions are told, as `read` reads it."""
Env = FunctionEnv | DirectEnv


def s3_options(region: str, endpoint_url: str) -> dict[str, str]:
    """As AWS_REGION and AWS_ENDPOINT_URL say, either may be empty; in the words of pyarrow's URIs."""
    where = urlsplit(endpoint_url)
    told = {"region": region, "endpoint_override": where.netloc, "scheme": where.scheme}
    return {name: value for name, value in told.items() if value}


def read(environ: Mapping[str, str] = os.environ) -> FunctionEnv:
    """Raises KeyError that names the variable, ValueError that says what is allowed."""
    world = environ[WORLD]
    if world == "local":
        pages = environ.get(PAGES, "login")
        if pages not in ("open", "login"):
            raise ValueError(f"{PAGES} is {pages!r}; allowed: open, login.")
        found = {"address": environ.get(ADDRESS, ""), "reports": environ.get(REPORTS, "")}
        return LocalEnv(data=environ[DATA], pages=pages, **found)
    if world == "aws":
        return AwsEnv(
            bucket=environ[BUCKET],
            table=environ[TABLE],
            queue_url=environ[QUEUE_URL],
            keys=environ[KEYS],
            keys_kms_key=environ.get(KEYS_KMS_KEY, ""),
            reports_bucket=environ.get(REPORTS_BUCKET, ""),
            reports=environ.get(REPORTS, ""),
            endpoint_url=environ.get(AWS_ENDPOINT_URL, ""),
            region=environ.get(AWS_REGION, ""),
        )
    raise ValueError(f"{WORLD} is {world!r}; allowed: local, aws.")
