"""B7: what a server will never take is not sent to it twice."""

from __future__ import annotations

from tests.faults.proxy import PASS, Fault, Request, status
from tests.faults.rig import rig, story
from tests.faults.row import Row
from tests.faults.telling import OF_ONE

STATUSES = (400, 404, 409, 410, 415, 422, 301, 302, 308)


def run(short: bool) -> Row:
    requests = dict[int, int]()
    lost = doubled = unlike = numbered = 0
    for code in STATUSES[::4] if short else STATUSES:
        with rig() as it:
            refused = list[bytes]()

            def choose(request: Request, code: int = code, refused: list[bytes] = refused) -> Fault:
                # The first message: before any answer, so no encoding is in use that not every server takes.
                if not it.proxy.seen or (refused and request.body in refused):
                    refused.append(request.body)
                    return status(code, location="http://127.0.0.1:9/")
                return PASS

            it.proxy.choose = choose
            it.line.put_every(story(it.line, last=19), 20)
            it.line.run()
            found = it.verdict()
            requests[code] = len(refused)
        numbered += found.numbered
        lost, doubled = lost + found.lost, doubled + found.doubled
        unlike += found.missing != OF_ONE
    return Row(
        id="B7",
        what="a message answered with a final 4xx or a redirect",
        tried=numbered,
        lost=lost,
        doubled=doubled,
        held=not (lost or doubled or unlike) and set(requests.values()) == {1},
        figures={f"requests_{code}": n for code, n in requests.items()},
    )
