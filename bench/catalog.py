"""Every benchmark there is."""

from __future__ import annotations

from bench.at_rest import at_rest
from bench.close import close
from bench.hosts import hosts
from bench.import_cost import import_cost
from bench.ingest import ingest
from bench.instructions import instructions
from bench.interval import interval
from bench.layouts import layouts
from bench.memory import memory
from bench.message_bytes import message_bytes
from bench.queries import queries
from bench.report_size import report_size
from bench.rows import Bench
from bench.run_report import run_report
from bench.scrub import scrub
from bench.start import start
from bench.write_cpu import write_cpu

BENCHES = {
    bench.name: bench
    for bench in (
        Bench(
            "instructions", "what a watched scheduler executes more than a bare one (callgrind; minutes)", instructions
        ),
        Bench("interval", "CPU of one interval on the scheduler's event loop", interval),
        Bench("hosts", "CPU of a real scheduler process, watched by us and by others", hosts),
        Bench("memory", "what a scheduler's process grows by in a day (many minutes)", memory),
        Bench("start", "what a scheduler waits for when the plugin starts", start),
        Bench("close", "what a scheduler waits for when it closes", close),
        Bench("scrub", "CPU of masking secrets, in the sender's thread", scrub),
        Bench("message-bytes", "size of a message on the wire", message_bytes),
        Bench("write-cpu", "CPU per message from decode to Parquet", write_cpu),
        Bench("at-rest", "size of messages and worker samples in the lake", at_rest),
        Bench("layouts", "a sealed day against one file per post", layouts),
        Bench("ingest", "what `daskscope serve` takes in on one core", ingest),
        Bench("queries", "a year of a team, asked, beside DuckDB's own tables (needs that year; minutes)", queries),
        Bench("report-size", "all messages of a run against its performance_report", report_size),
        Bench(
            "run-report", "the report that we make of a run after the fact against its performance_report", run_report
        ),
        Bench("import-cost", "start of each function against boto3", import_cost),
    )
}
