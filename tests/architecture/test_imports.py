"""Who may import whom, and what a user may import."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import daskscope

ROOT = Path(__file__).parents[2]


def test_import_contracts_are_kept() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_names_of_the_package_are_these() -> None:
    assert set(daskscope.__all__) == {
        "BadMessage", "BadRequest", "Comparison", "Conflict", "DaskscopeError", "Deleted", "Members", "NotClosable",
        "NotFound", "NotLoggedIn", "NotOnScheduler", "PerformanceReport", "PermissionDenied", "Preview", "Profile",
        "Record", "Records", "Registration", "ServerError", "ServerUnreachable", "Session", "SettingsError", "TooLarge",
        "UnknownVersion", "VersionMismatch", "__version__", "change_performance_report", "close", "compare",
        "compare_hardware", "config", "connect", "costs", "create_token", "dask_setup", "delete_performance_report",
        "download_performance_report", "get_cluster", "get_computation", "get_performance_report", "get_profile",
        "invite_user", "list_audit", "list_clusters", "list_code", "list_computations", "list_deaths", "list_events",
        "list_exceptions", "list_groups", "list_invitations", "list_members", "list_metrics",
        "list_performance_reports", "list_prefixes", "list_samples", "list_spans", "list_tasks", "list_tokens",
        "list_users", "list_workers", "logs",
        "performance_report", "policy", "preview", "prices", "register", "remove_user", "report", "revoke_token",
        "rotate_token", "set_policy", "set_role", "sql", "upload_performance_report", "whoami",
        "withdraw_invitation",
    }  # fmt: skip
    assert daskscope.__all__ == sorted(daskscope.__all__)


@pytest.mark.parametrize("name", daskscope.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(daskscope, name) is not None


def test_analytics_has_the_same_functions_for_those_who_come_from_coiled() -> None:
    analytics = importlib.import_module("daskscope.analytics")
    for name in (
        "close",
        "dask_setup",
        "list_clusters",
        "list_computations",
        "list_events",
        "list_exceptions",
        "register",
    ):
        assert getattr(analytics, name) is getattr(daskscope, name)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        daskscope.no_such_name  # type: ignore[attr-defined] # noqa: B018 - the access is the test


def test_handlers_are_short() -> None:
    handlers = ROOT / "lambdas" / "daskscope_lambdas" / "handlers"
    texts = {path.name: path.read_text() for path in handlers.glob("*.py")}
    long = {name: n for name, text in texts.items() if "\ndef handler(" in text and (n := text.count("\n")) > 60}
    assert not long


def test_modules_stay_small() -> None:
    roots = [ROOT / name for name in ("plugin", "query", "lambdas", "infra")]
    long = {p.name: n for root in roots for p in root.rglob("*.py") if (n := len(p.read_text().splitlines())) > 400}
    assert not long
