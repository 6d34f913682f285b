"""The shelf where the system itself sets bounds: a process that may write no large files."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import json, resource, sys
from pathlib import Path
from daskscope import testing, wire
from daskscope.parcel import repacked
from daskscope.shelf import WriteAhead

def parcel(seq):
    return repacked(json.loads(wire.encode(testing.message(seq=seq))), ())

shelf = WriteAhead(Path(sys.argv[1]))
kept = [shelf.keep(parcel(0))]
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
kept += [shelf.keep(parcel(n)) for n in range(1, 4)]
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
kept += [shelf.keep(parcel(4))]
print(kept)
"""


def test_a_write_that_the_system_cuts_short_is_in_memory_alone_and_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[True, False, False, False, True]\n", done.stderr
    assert done.stderr.count("messages are in memory alone") == 1
    names = sorted(path.name.split("-")[-1] for path in tmp_path.iterdir() if path.suffix != ".lock")
    assert names == ["00000000.zst.msg", "00000004.zst.msg"]
