"""How much a message is once it is unpacked, which its bytes do not tell: an empty list has two, and 64 in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from daskscope import wire


def entries(message: wire.Message) -> Iterator[tuple[str, int]]:
    """Places, and how many rows and elements of lists and maps stand there; without what goes into the live row."""
    groups = message.groups
    n_groups, n_columns = len(groups.no), len(groups.states) + len(groups.action_us)
    yield "$.workers", len(message.workers.address)
    yield "$.sums", len(message.sums)
    yield "$.groups", n_groups + n_columns * (n_groups + 1)
    yield "$.groups.dependencies", sum(map(len, groups.dependencies))
    yield "$.groups.types", sum(map(len, groups.types))
    yield "$.computations", sum(1 + len(each.code) + sum(map(len, each.code)) for each in message.computations)
    yield "$.codes", len(message.codes)
    yield "$.exceptions", sum(1 + len(family.workers) for family in message.exceptions)
    yield "$.events", len(message.events)
    yield "$.members", len(message.members) + sum(n for n, _ in _joined(message))
    yield "$.environments", sum(1 + len(environment.packages) for environment in message.environments)
    yield "$.hardware", sum(1 + len(hardware.gpus) for hardware in message.hardware)
    yield "$.deaths", sum(1 + len(death.processing) for death in message.deaths)
    yield "$.spans", sum(1 + len(span.name) for span in message.spans)
    yield "$.metrics", len(message.metrics.value)
    yield "$.tasks", len(message.tasks.group) + len(message.tasks.addresses)
    yield "$.logs", len(message.logs.no)
    yield "$.profiles", sum(1 + len(p.frames) + len(p.stack) + sum(map(len, p.stack)) for p in message.profiles)


def n_entries(message: wire.Message) -> int:
    return sum(n for _, n in entries(message))


def repeated(message: wire.Message) -> Iterator[tuple[str, int]]:
    """Places, and the characters of texts that stand there once and in many rows: a short message may hold a lot."""
    lengths = list(map(len, message.tasks.addresses))
    yield "$.tasks.addresses", sum(map(lengths.__getitem__, message.tasks.worker))
    yield "$.members", sum(n_chars for _, n_chars in _joined(message))
    for number, profile in enumerate(message.profiles):
        lengths = list(map(len, profile.frames))
        yield f"$.profiles[{number}].frames", sum(sum(map(lengths.__getitem__, stack)) for stack in profile.stack)


def n_repeated(message: wire.Message) -> int:
    return sum(n for _, n in repeated(message))


def _joined(message: wire.Message) -> Iterator[tuple[int, int]]:
    """Elements and characters that members take from what they share, one pair for each thing that is shared."""
    if not message.members:
        return
    for index, n in Counter(member.environment for member in message.members).items():
        if index is not None:
            software = message.environments[index]
            texts = (software.python, software.python_path, software.os, software.machine)
            packages = sum(len(name) + len(version) for name, version in software.packages.items())
            yield n * len(software.packages), n * (packages + sum(map(len, texts)))
    for index, n in Counter(member.hardware for member in message.members).items():
        if index is not None:
            machine = message.hardware[index]
            texts = (machine.provider, machine.instance_type, machine.region, machine.zone, machine.lifecycle)
            yield n * len(machine.gpus), n * (sum(map(len, texts)) + sum(map(len, machine.gpus)))
