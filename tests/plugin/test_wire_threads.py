"""A server's first messages come at the same time, in threads of one process."""

import subprocess
import sys

_MANY_AT_ONCE = """
import sys, threading
from daskscope import testing, wire

sys.setswitchinterval(1e-6)
plain = wire.encode(testing.message(seq=7))
start, decoded = threading.Barrier(8), []

def decode():
    start.wait()
    decoded.append(wire.decode(plain).seq)

threads = [threading.Thread(target=decode) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert decoded == [7] * 8, decoded
"""


def test_the_first_messages_may_be_decoded_by_many_threads_at_once() -> None:
    # With a decoder for each of them two of three such processes end by a segmentation fault.
    started = [subprocess.Popen([sys.executable, "-c", _MANY_AT_ONCE], stderr=subprocess.PIPE) for _ in range(8)]
    ended = [(process.communicate()[1].decode(), process.returncode) for process in started]
    assert ended == [("", 0)] * 8
