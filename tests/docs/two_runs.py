"""Two small clusters of a user's, one after the other, in which a third of the tasks fail. Run as a script."""

from distributed import Client, LocalCluster, wait

import daskscope


def read_amount(text: str) -> float:
    return sum(float(text) for _ in range(20_000)) / 20_000


def run(name: str) -> None:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        daskscope.register(client, name=name)
        wait(client.map(read_amount, ["12.50", "n/a", "7.00"] * 20, pure=False))


if __name__ == "__main__":
    for day in ("monday", "tuesday"):
        run(day)
