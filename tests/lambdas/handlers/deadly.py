"""`write` in a process of its own, which one message ends: `python -m tests.lambdas.handlers.deadly` takes an event."""

import json
import os
import signal
import sys
from typing import Any

from daskscope_lambdas.handlers import write
from daskscope_lambdas.service import batch

KILLER = "killer"


def main() -> None:
    unpack = batch.unpack_sized

    def deadly(body: str) -> Any:
        if body == KILLER:
            os.kill(os.getpid(), signal.SIGKILL)
        return unpack(body)

    batch.unpack_sized = deadly
    json.dump(write.handler(json.load(sys.stdin), None), sys.stdout)


if __name__ == "__main__":
    main()
