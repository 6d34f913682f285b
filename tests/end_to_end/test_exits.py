"""However a process that holds a cluster ends: it ends, and where that goes in order, its last message is there."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.end_to_end.processes import START, Place, black_hole, dead, run, up

ENDS = (
    START
    + """
def end(how):
    if how == "async, not closed":
        async def main():
            cluster = await LocalCluster(asynchronous=True, **LOCAL)
            client = await Client(cluster, asynchronous=True)
            print("cluster", (await daskscope.register(client)).cluster, flush=True)
            assert await client.submit(int, 7) == 7
        return asyncio.run(main())
    cluster, client = begun()
    print("cluster", daskscope.register(client).cluster, flush=True)
    if how == "closed":
        client.close()
        cluster.close()
    elif how == "client closed":
        client.close()
    elif how == "shut down":
        client.shutdown()
    elif how == "sys.exit":
        sys.exit(3)
    elif how == "unhandled":
        raise ValueError("nobody handles it")
    elif how == "os._exit":
        os._exit(4)
    elif how.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, how))
        threading.Event().wait(100)

if __name__ == "__main__":
    end(sys.argv[1])
"""
)

IN_ORDER = ("left open", "closed", "client closed", "shut down", "sys.exit", "unhandled", "SIGINT")
"""With these Dask closes the scheduler."""
AT_ONCE = ("os._exit", "SIGTERM", "async, not closed")
"""With these it does not: SIGTERM ends a Python process without running any more of it, unless it says otherwise."""
SERVERS: dict[str, Callable[[], AbstractContextManager[Place]]] = {"up": up, "dead": dead, "black hole": black_hole}


def ends(folder: Path, how: str, server: str) -> str | None:
    """One process from its start to its end; how its last message ended, None if nothing is to be known of that."""
    folder.mkdir(parents=True)
    with SERVERS[server]() as place:
        done = run(folder, ENDS, how, place.url, str(folder))
        assert "cluster " in done.stdout, done.stdout
        wanted = {"sys.exit": 3, "unhandled": 1, "os._exit": 4, "SIGTERM": -15}
        if how in wanted:
            assert done.returncode == wanted[how], done.stdout
        elif how != "SIGINT":
            assert done.returncode == 0, done.stdout
        if server != "up":
            return None
        heard = place.heard()
        assert [message.seq for message in heard] == [*range(len(heard))], "each once, in order"
        return heard[-1].phase if heard else "nothing"


def all_end(folder: Path, exits: Sequence[tuple[str, str]]) -> list[tuple[str, str, str | None]]:
    """Two at a time."""
    with ThreadPoolExecutor(2) as pool:
        told = pool.map(lambda each: ends(folder / str(each[0]), *each[1]), enumerate(exits))
        return [(*each, phase) for each, phase in zip(exits, told, strict=True)]


def test_a_process_ends_with_a_server_that_is_up_or_silent(tmp_path: Path) -> None:
    told = all_end(tmp_path, [("left open", "up"), ("unhandled", "black hole")])
    assert [phase for _, _, phase in told] == ["closed", None]


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_200_exits_hang_never_and_in_order_nearly_all_last_messages_arrive(tmp_path: Path) -> None:
    exits = list(itertools.islice(itertools.cycle(itertools.product((*IN_ORDER, *AT_ONCE), SERVERS)), 200))
    told = all_end(tmp_path, exits)
    phases = Counter(phase for how, server, phase in told if how in IN_ORDER and server == "up")
    print(Counter(told))
    assert len(told) == 200
    assert phases["closed"] >= 0.99 * phases.total()
