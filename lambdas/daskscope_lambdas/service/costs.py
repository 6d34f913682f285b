"""What clusters cost, one or all of a team over days."""

from __future__ import annotations

from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.cost import Cost, priced
from daskscope_lambdas.service.found import Asker
from daskscope_lambdas.service.price_store import PriceReader
from daskscope_lambdas.service.usage import UsageReader


class Costs:
    def __init__(self, asker: Asker, prices: PriceReader) -> None:
        self._asker, self._prices = asker, prices

    def of(self, row: ClusterRow) -> Cost:
        """Of one cluster, with what the lake has of its machines."""
        usage = UsageReader(self._asker).of(row.account, [row])
        return priced(row, usage.get(row.uuid), self._prices.of(row.account))
