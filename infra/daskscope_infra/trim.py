"""What of the installed packages no function ever opens. Lambda takes 250 MB unpacked: untrimmed they have more."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cut:
    why: str
    patterns: tuple[str, ...]
    """As Path.glob takes them, from the folder that packages are installed in."""
    but: frozenset[str] = frozenset()
    """Names that stay."""


SERVICES = frozenset({"dynamodb", "s3", "sqs", "ssm", "sts"})

CUTS = (
    Cut("C++ and Cython to build on", ("pyarrow/include*", "pyarrow/src", "pyarrow/*.px[di]", "pyarrow/*.pyx")),
    Cut("its own tests", ("pyarrow/tests", "pyarrow/_pyarrow_cpp_tests.*")),
    Cut(
        "the same library twice more, for linkers", ("pyarrow/libarrow_python*.so", "pyarrow/libarrow_python*.so.*.*.*")
    ),
    Cut("Flight, a protocol", ("pyarrow/_flight.*", "pyarrow/libarrow*flight.*")),
    # Its library stays: pyarrow.lib is linked to it.
    Cut("Substrait, a language of query plans", ("pyarrow/_substrait.*",)),
    Cut("ORC, another format", ("pyarrow/_orc.*", "pyarrow/_dataset_orc.*")),
    Cut("other stores than S3", ("pyarrow/_azurefs.*", "pyarrow/_gcsfs.*", "pyarrow/_hdfs.*")),
    Cut("Parquet's own encryption", ("pyarrow/_*parquet_encryption.*", "pyarrow/libarrow_python_parquet_encryption.*")),
    Cut("models of services that are not called", ("botocore/data/*/",), but=SERVICES),
    Cut("examples for documentation", ("botocore/data/*/*/examples-1.json",)),
    Cut("models of boto3's resources; clients are used alone", ("boto3/data/*",)),
    Cut("a second binding, for PyPy", ("zstandard/_cffi.*", "zstandard/backend_cffi.py")),
    Cut("a page that shows an OpenAPI file", ("aws_lambda_powertools/event_handler/openapi/swagger_ui/*.min.*",)),
    Cut("programs", ("bin",)),
    # METADATA stays, for duckdb asks it for its version, and the licence.
    Cut(
        "notes of the installer",
        tuple(f"*.dist-info/{name}" for name in ("INSTALLER", "RECORD", "REQUESTED", "WHEEL", "sboms")),
    ),
)


def trim(folder: Path) -> list[str]:
    """Delete what CUTS names. Returns the patterns that are out of date: the package is there and nothing matches."""
    stale: list[str] = []
    for cut in CUTS:
        for pattern in cut.patterns:
            found = [path for path in folder.glob(pattern) if path.name not in cut.but]
            for path in found:
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
            if not found and any(folder.glob(pattern.partition("/")[0])):
                stale.append(pattern)
    return stale
