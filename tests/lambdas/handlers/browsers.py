"""A browser as far as pages need one: it keeps cookies, and fills in forms of the page it is on."""

import html
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from daskscope_lambdas.handlers import api
from daskscope_lambdas.ports import Clock, Role, Tickets
from daskscope_lambdas.service.tickets import sign_in_link
from daskscope_lambdas.service.tokens import OF_ROLES
from daskscope_lambdas.wiring import Adapters
from tests.lambdas.handlers.conftest import event

HOST = "scope.example"


class Browser:
    """`origin`: as it says where a form is from."""

    def __init__(self, origin: str = f"http://{HOST}") -> None:
        self.origin = origin
        self.cookies = dict[str, str]()
        self.body = ""

    def get(self, target: str, **headers: str) -> dict[str, Any]:
        path, _, query = target.partition("?")
        return self._go("GET", path, query, b"", headers)

    def post(self, path: str, fields: Mapping[str, str] | None = None, **headers: str) -> dict[str, Any]:
        """The fields alone; a header that is empty is left away."""
        told = {"content-type": "application/x-www-form-urlencoded", "origin": self.origin,
                "sec-fetch-site": "same-origin"}  # fmt: skip
        told |= {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {name: value for name, value in told.items() if value}
        return self._go("POST", path, "", urlencode(fields or {}).encode(), sent)

    def fill(self, path: str, **fields: str) -> dict[str, Any]:
        """Posts to `path` what the hidden fields of its form on this page say, and `fields`."""
        forms = re.findall(r'<form[^>]*method="post"[^>]*action="[./]*([^"]*)"[^>]*>(.*?)</form>', self.body, re.S)
        (form,) = (inside for action, inside in forms if f"/{action}" == path)
        hidden = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form)
        return self.post(path, {name: html.unescape(value) for name, value in hidden} | fields)

    def _go(self, method: str, path: str, query: str, body: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
        sent = tuple(f"{name}={value}" for name, value in self.cookies.items())
        answer = api.handler(event(method, path, {"host": HOST, **headers}, body, query, sent), None)
        for cookie in answer.get("cookies") or ():
            pair, *how = cookie.split("; ")
            name, _, value = pair.partition("=")
            self.cookies.pop(name, None)
            if "Max-Age=0" not in how:
                self.cookies[name] = value
        self.body = answer["body"]
        return answer


def link(tickets: Tickets, clock: Clock, account: str = "acme", user: str | None = None, **options: Any) -> str:
    """A sign-in link that may do all, as path and query."""
    return "/" + sign_in_link(tickets, clock, account, OF_ROLES["admin"], user=user, **options).url


def person(world: Adapters, user: str, **roles: Role) -> Browser:
    """Somebody who is signed in, with a role in each of these accounts; they came by the first."""
    from daskscope_lambdas.service.people import People

    people = People(world.users, world.clock)
    for account, role in roles.items():
        people.put(account, user, role, "test")
    browser = Browser()
    browser.get(link(world.tickets, world.clock, next(iter(roles)), user))
    assert browser.fill("/login")["statusCode"] == 303
    return browser
