"""Everything that is read: the JSON API and the pages, behind one resolver."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError

from daskscope.errors import NotFound
from daskscope_lambdas.handlers import api_pages, errors, house, routers, versions
from daskscope_query import engine

house.start("tokens", "clusters", "seals", "objects")
engine.limit_memory(house.memory_bytes())

app = APIGatewayHttpResolver()
for router in routers.ALL:
    app.include_router(router)


@app.exception_handler(Exception)
def on_error(error: Exception) -> Response[str]:
    event = app.current_event
    found = errors.problem(error, event.request_context.request_id, frank=house.is_frank())
    if event.path.startswith("/api/"):
        headers = {"Cache-Control": "no-store", **found.headers}
        return Response(found.status, "application/json", found.body(), headers)
    return api_pages.problem_page(event, found)


@app.not_found
def on_unknown_route(_error: NotFoundError) -> Response[str]:
    event = app.current_event
    return on_error(NotFound(f"Nothing answers {event.http_method} {event.path} here."))


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """An API Gateway v2 event to its response. One at a time per process: the resolver keeps the event on its class."""
    http = event["requestContext"]["http"]
    if http["method"] == "HEAD":  # A GET whose body the web server leaves away.
        event = {**event, "requestContext": {**event["requestContext"], "http": {**http, "method": "GET"}}}
    return versions.told(app.resolve(event, context))
