"""The generated part of docs/reference/python.md: every public name with its signature and docstring."""

import inspect
import json
from collections.abc import Callable, Iterator
from typing import Any

import daskscope
from daskscope import errors

WIDTH = 96
"""Characters of a signature in one line."""


def python_names() -> str:
    """A section for each function and class; errors have a page of their own."""
    known = {name: getattr(daskscope, name) for name in daskscope.__all__ if name != "__version__"}
    functions = [f"### {name}\n\n{_indented(signature(name, known[name]))}\n\n{_doc(known[name])}"
                 for name in known if not inspect.isclass(known[name])]  # fmt: skip
    classes = [_class(name, known[name]) for name in class_names()]
    return "\n\n".join(["## Functions", *functions, "## Classes", *classes])


def class_names() -> list[str]:
    found = [name for name in daskscope.__all__ if inspect.isclass(getattr(daskscope, name))]
    return [name for name in found if not issubclass(getattr(daskscope, name), errors.DaskscopeError)]


def signature(name: str, thing: Callable[..., Any]) -> str:
    """As one types it, with types as they stand in the code."""
    found = inspect.signature(thing)
    parts = list(_parameters(found))
    returns = "" if found.return_annotation in (found.empty, "None") else f" -> {found.return_annotation}"
    whole = f"{name}({', '.join(parts)}){returns}"
    return whole if len(whole) <= WIDTH else "\n".join([f"{name}(", *(f"    {each}," for each in parts), f"){returns}"])


def _parameters(found: inspect.Signature) -> Iterator[str]:
    is_keyword = False
    for each in found.parameters.values():
        if each.kind is each.KEYWORD_ONLY and not is_keyword:
            yield "*"
        is_keyword = is_keyword or each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        star = "*" if each.kind is each.VAR_POSITIONAL else ""
        of_type = "" if each.annotation is each.empty else f": {each.annotation}"
        default = "" if each.default is each.empty else f" = {_value(each.default)}"
        if each.name != "self":
            yield f"{star}{each.name}{of_type}{default}"


def _value(default: object) -> str:
    return json.dumps(default) if isinstance(default, str) else repr(default)


def _class(name: str, kind: type) -> str:
    """What it is, and the methods and properties that it has itself; those of a session are the functions."""
    own = ["disconnect"] if kind is daskscope.Session else [each for each in vars(kind) if not each.startswith("_")]
    lines = [
        f"- `{each}{'' if isinstance(thing, property) else '(' + ', '.join(_parameters(_own(thing))) + ')'}`: "
        f"{' '.join(_doc(thing).split())}"
        for each in own
        if (thing := inspect.getattr_static(kind, each)).__doc__
        and (inspect.isfunction(thing) or isinstance(thing, property))
    ]
    return "\n\n".join([f"### {name}", _doc(kind), *(["\n".join(lines)] if lines else [])])


def _own(method: Callable[..., Any]) -> inspect.Signature:
    found = inspect.signature(method)
    return found.replace(parameters=[each for each in found.parameters.values() if each.name != "self"])


def _doc(thing: object) -> str:
    return inspect.getdoc(thing) or ""


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
