"""The origin of reports in an emulator that asks who may: what CloudFront shows of the bucket, and what it says then.

The emulator keeps nothing for later, so how long CloudFront does is held against the template alone; so is that only
what is encrypted on its way is answered, for here everything comes as plain HTTP that calls itself otherwise.
"""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import boto3
import httpx
import pytest

from daskscope_lambdas import isolation
from daskscope_lambdas.env import AwsEnv
from daskscope_lambdas.ports import Missing
from daskscope_lambdas.wiring import Adapters, connect
from tests.aws_world import point_at
from tests.emulator import Emulator
from tests.infra.template import Template

STACK = "reports"
LINK = "0123456789abcdefghijKL"
OTHER = "9123456789abcdefghijKL"
HTML = b"<!doctype html><title>report</title>"


@dataclass(frozen=True)
class Origin:
    emulator: Emulator
    host: str
    bucket: str
    world: Adapters

    def ask(self, path: str, method: str = "GET") -> httpx.Response:
        """As a browser does, by its host name, which leads to the emulator here."""
        headers = {"Host": self.host, "X-Forwarded-Proto": "https"}
        return httpx.request(method, f"{self.emulator.url}/{path}", headers=headers, trust_env=False)


@pytest.fixture(scope="module")
def origin(plain: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Origin]:
    outputs = {name: plain.body["Outputs"][name] for name in ("Reports", "ReportsBucket")}
    resources = {name: _without_deny(r) for name, r in plain.body["Resources"].items() if "Reports" in name}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTH", "true")
        with Emulator(tmp_path_factory.mktemp("strict")) as emulator:
            point_at(emulator, patch)
            formation: Any = boto3.client("cloudformation")
            body = json.dumps({"Resources": resources, "Outputs": outputs})
            formation.create_stack(StackName=STACK, TemplateBody=body)
            formation.get_waiter("stack_create_complete").wait(StackName=STACK, WaiterConfig={"Delay": 1})
            (stack,) = formation.describe_stacks(StackName=STACK)["Stacks"]
            out = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
            env = AwsEnv(
                bucket="", table="", queue_url="", keys="", reports_bucket=out["ReportsBucket"],
                endpoint_url=emulator.url,
            )  # fmt: skip
            with closing(connect(env)) as world:
                yield Origin(emulator, urlsplit(out["Reports"]).hostname or "", out["ReportsBucket"], world)


def _without_deny(resource: dict[str, Any]) -> dict[str, Any]:
    """A bucket's policy without what refuses plain HTTP."""
    if resource["Type"] != "AWS::S3::BucketPolicy":
        return resource
    told: dict[str, Any] = json.loads(json.dumps(resource))
    document = told["Properties"]["PolicyDocument"]
    document["Statement"] = [each for each in document["Statement"] if each["Effect"] == "Allow"]
    return told


@pytest.fixture
def kept(origin: Origin) -> Iterator[Origin]:
    """With a public report."""
    files = origin.world.report_files
    upload = files.offer(LINK, len(HTML), time.time() + 60)
    told = httpx.post(upload.url, data=dict(upload.fields), files={"file": HTML}, trust_env=False)
    assert told.status_code == 204, told.text
    files.keep(LINK, private=False)
    yield origin
    files.delete(LINK)


def isolated(told: httpx.Response) -> bool:
    return {name: told.headers.get(name) for name in isolation.HEADERS} == dict(isolation.HEADERS)


def test_a_public_report_is_shown_and_may_be_held_for_a_moment(kept: Origin) -> None:
    told = kept.ask(kept.world.report_files.address(LINK, private=False))
    assert (told.status_code, told.content) == (200, HTML)
    assert told.headers["content-type"] == "text/html; charset=utf-8"
    assert told.headers["cache-control"] == "public, max-age=30"
    assert isolated(told)


def test_a_private_one_is_shown_at_an_address_that_ends(kept: Origin) -> None:
    kept.world.report_files.move(LINK, private=True)
    shown = kept.world.report_files.address(LINK, private=True)
    told = kept.ask(shown)
    assert (told.status_code, told.content) == (200, HTML)
    assert told.headers["cache-control"] == "private, no-store"
    assert isolated(told)
    until, _, rest = shown.removeprefix("shown/").partition("-")
    assert time.time() < int(until) < time.time() + 120
    over = kept.ask(f"shown/{int(time.time()) - 1}-{rest}")
    assert (over.status_code, "is over" in over.text) == (403, True)
    assert kept.ask(f"shown/{int(until) + 3600}-{rest}").status_code in (403, 404), "no such copy"


def test_what_was_brought_and_what_is_private_is_not_shown_whatever_is_asked(kept: Origin) -> None:
    s3: Any = boto3.client("s3")
    for key in (f"incoming/{LINK}", f"private/{LINK}.html", f"{LINK}.html", "index.html"):
        s3.put_object(Bucket=kept.bucket, Key=key, Body=HTML)
    asked = [
        f"incoming/{LINK}", f"private/{LINK}.html", f"public/../private/{LINK}.html",
        f"public/%2e%2e/private/{LINK}.html", f"public//{LINK}.html", f"{LINK}.html", "index.html", "", "?list-type=2",
        f"public/{LINK}.htm", f"PUBLIC/{LINK}.html", f"shown/{LINK}.html", f"shown/99999999999999-{LINK}.html",
        f"public/{'z' * 22}.html",
    ]  # fmt: skip
    for path in asked:
        told = kept.ask(path)
        assert told.status_code in (403, 404), path
        assert HTML not in told.content
        assert isolated(told), path
        assert "set-cookie" not in told.headers


def test_s3_takes_no_form_that_was_changed(origin: Origin) -> None:
    upload = origin.world.report_files.offer(OTHER, len(HTML), time.time() + 60)
    policy = json.loads(base64.b64decode(upload.fields["policy"]))
    policy["conditions"] = [each for each in policy["conditions"] if "content-length-range" not in each]
    loosened = base64.b64encode(json.dumps(policy).encode()).decode()
    for changed in ({"policy": loosened}, {"x-amz-signature": "0" * 64}, {"x-amz-credential": "another"}):
        fields = {**upload.fields, **changed}
        told = httpx.post(upload.url, data=fields, files={"file": HTML + b"x"}, trust_env=False)
        assert told.status_code in (400, 403), changed
    with pytest.raises(Missing):
        origin.world.report_files.arrived(OTHER, 1)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nobody_writes_through_it(kept: Origin, method: str) -> None:
    assert kept.ask(f"public/{LINK}.html", method).status_code == 403
    assert kept.ask(f"public/{LINK}.html").content == HTML


def test_what_was_deleted_is_gone_for_who_asks_again(kept: Origin) -> None:
    address = kept.world.report_files.address(LINK, private=False)
    kept.world.report_files.delete(LINK)
    assert kept.ask(address).status_code in (403, 404)


def test_who_is_not_cloudfront_reads_nothing(kept: Origin) -> None:
    told = httpx.get(f"{kept.emulator.url}/{kept.bucket}/public/{LINK}.html", trust_env=False)
    assert told.status_code == 403


def test_it_holds_what_is_public_for_half_a_minute_and_all_else_not_at_all(plain: Template) -> None:
    config = plain.one("AWS::CloudFront::Distribution")["Properties"]["DistributionConfig"]
    ((name, policy),) = plain.of_type("AWS::CloudFront::CachePolicy").items()
    held = policy["Properties"]["CachePolicyConfig"]
    assert (held["MinTTL"], held["DefaultTTL"], held["MaxTTL"]) == (0, 30, 30)
    (public,) = config["CacheBehaviors"]
    assert (public["PathPattern"], public["CachePolicyId"]) == ("public/*", {"Ref": name})
    # AWS's own `CachingDisabled`.
    assert config["DefaultCacheBehavior"]["CachePolicyId"] == "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"
    for behavior in (public, config["DefaultCacheBehavior"]):
        assert behavior["ViewerProtocolPolicy"] == "https-only"
        assert behavior["AllowedMethods"] == ["GET", "HEAD"]
        assert [each["EventType"] for each in behavior["FunctionAssociations"]] == ["viewer-request"]
    parameters = held["ParametersInCacheKeyAndForwardedToOrigin"]
    told = {parameters[f"{each}Config"][f"{one}Behavior"] for each, one in _FORWARDED}
    assert told == {"none"}, "no cookies, and nothing that makes one report many"
    assert "Logging" not in config, "addresses of private reports are secrets while they are good"


_FORWARDED = (("Cookies", "Cookie"), ("Headers", "Header"), ("QueryStrings", "QueryString"))


def test_what_was_brought_and_what_was_shown_goes_after_a_day(plain: Template) -> None:
    _, bucket = plain.bucket("ReportsBucket")
    rules = bucket["LifecycleConfiguration"]["Rules"]
    ends = {r["Prefix"]: r["ExpirationInDays"] for r in rules if "Prefix" in r}
    assert ends == {"incoming/": 1, "shown/": 1}
    (everywhere,) = (rule for rule in rules if "Prefix" not in rule)
    assert everywhere["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    assert "VersioningConfiguration" not in bucket, "what was deleted is gone"
