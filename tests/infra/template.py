"""A CloudFormation template, to look things up in: resources by their logical ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from daskscope_infra.policies import flat
from tests.infra.child import Asked

Resource = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a policy; `owner` is the type of the resource that holds it, `roles` whose it is."""

    owner: str
    roles: frozenset[str]
    effect: str
    principals: list[str]
    actions: list[str]
    resources: list[str]
    conditions: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Template:
    """`folder` is the assembly it lies in."""

    folder: Path
    body: dict[str, Any]

    def of_type(self, type: str) -> dict[str, Resource]:
        return {name: each for name, each in self.body["Resources"].items() if each["Type"] == type}

    def properties(self, type: str) -> list[dict[str, Any]]:
        return [found["Properties"] for found in self.of_type(type).values()]

    def one(self, type: str) -> Resource:
        (found,) = self.of_type(type).values()
        return found

    def outputs(self) -> dict[str, str]:
        return {name: flat(output["Value"]) for name, output in self.body["Outputs"].items()}

    def bucket(self, output: str = "Bucket") -> tuple[str, dict[str, Any]]:
        """The logical id and the properties of what that output names: the lake, or the reports."""
        name = self.outputs()[output].strip("<>")
        return name, self.of_type("AWS::S3::Bucket")[name]["Properties"]

    def functions(self) -> dict[str, dict[str, Any]]:
        """daskscope's own, by the module of their handler."""
        found = self.properties("AWS::Lambda::Function")
        ours = [each for each in found if each["Handler"].startswith("daskscope_lambdas.")]
        return {each["Handler"].split(".")[2]: each for each in ours}

    def role(self, function: str) -> str:
        """The logical id of a function's role."""
        return self.functions()[function]["Role"]["Fn::GetAtt"][0]

    def allowed(self, function: str) -> dict[str, set[str]]:
        """What a function's role may do: resources by action, other conditions than LeadingKeys left out."""
        found: dict[str, set[str]] = {}
        for statement in self.statements():
            if self.role(function) in statement.roles:
                for action in statement.actions:
                    found.setdefault(action, set()).update(_narrowed(statement))
        return found

    def registry_rights(self, function: str) -> set[tuple[str, str]]:
        """What a function may do to the registry: actions, each with the items or the index."""
        may = self.allowed(function)
        return {(action, on) for action in may if action.startswith("dynamodb:") for on in may[action]}

    def rights_used(self, function: str, asked: Asked) -> set[tuple[str, str]]:
        """Those of `registry_rights` that let it ask that; none if its role refuses. The table is the stack's."""
        operation, _, index, keys, attributes = asked
        (table,) = self.of_type("AWS::DynamoDB::Table")
        action, resource = f"dynamodb:{operation}", f"<{table}.Arn>" + (f"/index/{index}" if index else "")
        for statement in self.statements():
            if not (self.role(function) in statement.roles and action in statement.actions):
                continue
            if resource not in statement.resources:
                continue
            named = statement.conditions.get("ForAllValues:StringEquals", {}).get("dynamodb:Attributes")
            if named is not None and not {*attributes} <= {*named}:
                continue
            patterns = _leading_keys(statement)
            if not patterns:
                return {(action, resource)}
            found = [{pattern for pattern in patterns if fnmatchcase(key, pattern)} for key in keys]
            if found and all(found):
                return {(action, f"items {pattern}") for pattern in set[str]().union(*found)}
        return set()

    def statements(self) -> Iterator[Statement]:
        """Of every policy, wherever one stands, but for who may take on a role."""
        for resource in self.body["Resources"].values():
            yield from _statements(resource["Type"], resource.get("Properties", {}), frozenset())


def _narrowed(statement: Statement) -> list[str]:
    """The resources; of a table, its items."""
    items = _leading_keys(statement)
    return [f"items {key}" for key in items] if items else statement.resources


def _leading_keys(statement: Statement) -> list[str]:
    """The keys that items must have, in which `*` stands for anything; none if any will do."""
    return statement.conditions.get("ForAllValues:StringLike", {}).get("dynamodb:LeadingKeys", [])


def _statements(owner: str, value: Any, roles: frozenset[str]) -> Iterator[Statement]:
    if isinstance(value, dict):
        roles = frozenset(role["Ref"] for role in value.get("Roles", ()) if "Ref" in role) or roles
        for name, inner in value.items():
            if name == "Statement":
                yield from (_statement(owner, each, roles) for each in inner)
            elif name != "AssumeRolePolicyDocument":
                yield from _statements(owner, inner, roles)
    elif isinstance(value, list):
        for inner in value:
            yield from _statements(owner, inner, roles)


def _statement(owner: str, value: dict[str, Any], roles: frozenset[str]) -> Statement:
    assert not value.keys() & {"NotAction", "NotResource", "NotPrincipal"}, value
    principals = value.get("Principal", {})
    told = principals.values() if isinstance(principals, dict) else [principals]
    return Statement(
        owner,
        roles,
        value["Effect"],
        [flat(one) for each in told for one in _listed(each)],
        _listed(value["Action"]),
        [flat(each) for each in _listed(value["Resource"])],
        value.get("Condition", {}),
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
