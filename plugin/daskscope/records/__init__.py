"""What is answered: a plain list of plain dicts, or one of them, that also shows well and becomes a data frame."""

from __future__ import annotations

from daskscope.records.record import Comparison, Record
from daskscope.records.table import Records
from daskscope.records.values import CELL, SHOWN, printable, shown

__all__ = ["CELL", "SHOWN", "Comparison", "Record", "Records", "printable", "shown"]
