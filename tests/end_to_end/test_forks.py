"""A process that reports is forked: its children say nothing and end, and it goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.processes import START, run, up

FORKS = (
    START
    + """
import contextlib, multiprocessing

@contextlib.contextmanager
def free():
    yield

def child(leaves_in_order):
    logging.getLogger("distributed").warning("a child speaks")
    logging.getLogger("theirs").error("and once more")
    watch.poll()
    watch.sender.put(None)
    watch.teardown()
    if leaves_in_order:
        sys.exit(5)
    os._exit(6)

def fork(leaves_in_order, lock):
    with lock:
        pid = os.fork()
        if not pid:
            try:
                child(leaves_in_order)
            finally:
                os._exit(5)  # not the interpreter's own end: in a child Dask would wait for its event loop's thread
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == (5 if leaves_in_order else 6), status

def forked():
    logging.getLogger("distributed").warning("a child of multiprocessing speaks")
    sys.exit(5)

if __name__ == "__main__":
    cluster, client = begun()
    watch = cluster.scheduler.extensions["daskscope"]
    for n in range(int(sys.argv[1])):
        fork(n % 2, (free(), watch.sender._wake, watch.readers._logs._own._lock)[n // 2 % 3])
        if n % 10 == 0:
            process = multiprocessing.get_context("fork").Process(target=forked)
            process.start()
            process.join()
            assert process.exitcode == 5
            assert client.submit(int, n, pure=False).result(60) == n
    print("pid", os.getpid(), flush=True)
    client.close()
    cluster.close()
"""
)

FORKED_WORKERS = (
    START
    + """
if __name__ == "__main__":
    dask.config.set({"distributed.worker.multiprocessing-method": "fork"})
    first, _ = begun()
    second = LocalCluster(**{**LOCAL, "processes": True, "n_workers": 2})
    with Client(second) as client:
        daskscope.register(client)
        assert client.gather(client.map(int, range(20))) == [*range(20)]
        client.restart()
        assert client.gather(client.map(int, range(20), pure=False)) == [*range(20)]
    second.close()
    first.close()
"""
)


def forks(folder: Path, n: int, timeout_s: float) -> None:
    with up() as place:
        done = run(folder, FORKS, str(n), place.url, str(folder), timeout_s=timeout_s)
        assert done.returncode == 0, done.stdout
        heard = place.heard()
    assert len({message.boot for message in heard}) == 1
    assert [message.seq for message in heard] == [*range(len(heard))], "nothing of children, all of the parent"
    assert [message.phase for message in heard].index("closed") == len(heard) - 1
    told = [text for message in heard for text in message.logs.text]
    assert not [text for text in told if "child" in text]


def test_children_say_nothing_and_end_and_the_parent_goes_on(tmp_path: Path) -> None:
    forks(tmp_path, 12, 100)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_hundred_forks(tmp_path: Path) -> None:
    forks(tmp_path, 100, 500)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_workers_that_are_forked_beside_a_sender_report_nothing_themselves(tmp_path: Path) -> None:
    with up() as place:
        done = run(tmp_path, FORKED_WORKERS, "", place.url, str(tmp_path), timeout_s=250)
        assert done.returncode == 0, done.stdout
        heard = place.heard()
    for cluster in {message.cluster for message in heard}:
        of_one = [message for message in heard if message.cluster == cluster]
        assert len({message.boot for message in of_one}) == 1
        assert [message.seq for message in of_one] == [*range(len(of_one))]
        assert of_one[-1].phase == "closed"
    assert len({message.cluster for message in heard}) == 2
