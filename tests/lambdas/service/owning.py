"""What an account has beside its clusters: one with something of everything."""

from pathlib import Path

from daskscope_lambdas.ports import ReportDraft, Subject
from daskscope_lambdas.service import tickets
from daskscope_lambdas.service.audit import Audit, AuditReader, Operator
from daskscope_lambdas.service.found import Asker
from daskscope_lambdas.service.people import People
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.wiring import LocalAdapters


class Account:
    def __init__(self, world: LocalAdapters, name: str, link: str) -> None:
        self.world, self.name, self.link = world, name, link
        clock = world.clock
        People(world.users, clock).put(name, "ann", "admin", "root")
        mint(world.tokens, clock, name, ["read"], "laptop", user="ann")
        self.invitation = tickets.invitation(world.tickets, clock, name, "member", "ann").url.partition("=")[2]
        wanted: dict[Subject, dict[str, object]] = {
            "reports": {"public": "deny"}, "idle": {"timeout_s": 60}, "retention": {"tasks": 30},
        }  # fmt: skip
        for subject, wish in wanted.items():
            world.policies.set_wish(name, subject, wish)
        draft = ReportDraft(
            account=name, link=link, filename="x.html", title=None, private=False, user="ann", user_claimed=False,
            key_id="", size_bytes=4, created_at=clock.now(),
        )  # fmt: skip
        self.report = world.reports.add(draft)
        brought = world.report_host.draft()
        brought.write_text("html")
        world.report_host.bring(link, brought)
        world.report_files.keep(link, False)
        world.reports.keep(name, self.report.id, clock.now())
        Audit(world.objects, world.seals, clock).record(Operator(name, "root"), "account.create", name)

    def left(self) -> set[str]:
        world, name = self.world, self.name
        asker = Asker(world.lake_root, world.seals, world.deletions)
        found = {
            "users": world.users.list(name),
            "tokens": world.tokens.list(name),
            "reports": world.reports.page(name, 9),
            "reports' files": [path for path in self._files() if self.link in path],
            "wishes": [s for s in ("reports", "idle", "retention") if world.policies.wish(name, s)],
            "audit": AuditReader(asker, world.clock).acts(name, 9, 0).rows,
            "tickets": self._invitations(),
        }
        return {what for what, there in found.items() if there}

    def _files(self) -> list[str]:
        root = Path(self.world.lake_root).parent / "reports"
        return [str(path) for path in root.rglob("*") if path.is_file()]

    def _invitations(self) -> list[str]:
        try:
            tickets.look(self.world.tickets, self.world.clock, "invitation", self.invitation)
        except LookupError:
            return []
        return [self.invitation]
