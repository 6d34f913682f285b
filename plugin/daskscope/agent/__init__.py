"""What runs on workers and nannies: log lines, profile and hardware of their processes, told to the scheduler.

Sent there by value, so that it works where daskscope is not installed: nothing in here may import more than the
standard library, Dask and this package.
"""

NAME = "daskscope-agent"
"""The plugin's name on workers and nannies."""
TOPIC = "daskscope-agent"
"""The event topic in which agents talk to the scheduler."""
OURS = "distributed.daskscope"
"""Our own logger: what it says is not sent, or it would bring forth more."""
