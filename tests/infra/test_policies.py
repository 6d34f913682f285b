"""Who may do what: every statement of every policy in the template, also those that the CDK writes."""

import pytest

from daskscope_infra.policies import WILDCARDS, flat, form
from tests.infra.template import Statement, Template

STORES = {"dynamodb", "s3", "sqs", "ssm"}


@pytest.fixture(params=["plain", "chosen"])
def template(request: pytest.FixtureRequest) -> Template:
    return request.getfixturevalue(request.param)


def _allowing(template: Template) -> list[Statement]:
    return [statement for statement in template.statements() if statement.effect == "Allow"]


def test_no_star_without_a_reason(template: Template) -> None:
    for statement in _allowing(template):
        reasons = WILDCARDS.get(statement.owner, {})
        for told in (*statement.actions, *statement.resources):
            if "*" in told:
                assert reasons.get(form(told)), f"{told} in {statement}"


def test_every_reason_is_needed(plain: Template, chosen: Template) -> None:
    told = {
        (statement.owner, form(each))
        for statement in [*_allowing(plain), *_allowing(chosen)]
        for each in (*statement.actions, *statement.resources)
    }
    assert {(owner, each) for owner, reasons in WILDCARDS.items() for each in reasons} <= told


def test_nobody_at_large_may_do_anything(template: Template) -> None:
    principals = {p for statement in _allowing(template) for p in statement.principals}
    assert not [principal for principal in principals if "*" in principal]
    for resource in template.of_type("AWS::Lambda::Permission").values():
        assert resource["Properties"]["Principal"] != "*"
    assert not template.of_type("AWS::Lambda::Url")


def test_roles_are_taken_on_by_one_service_of_aws(template: Template) -> None:
    takers: dict[str, set[str]] = {}
    for name, role in template.of_type("AWS::IAM::Role").items():
        (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        assert (statement["Effect"], statement["Action"]) == ("Allow", "sts:AssumeRole")
        takers.setdefault(statement["Principal"]["Service"], set()).add(name)
        if statement["Principal"]["Service"].startswith("scheduler."):
            assert statement["Condition"]["StringEquals"]["aws:SourceAccount"] == {"Ref": "AWS::AccountId"}
    assert takers.keys() == {"lambda.amazonaws.com", "scheduler.amazonaws.com"}


def test_no_role_has_more_than_what_is_said_here(template: Template) -> None:
    for role in template.properties("AWS::IAM::Role"):
        assert not role.keys() & {"ManagedPolicyArns", "Policies"}
    assert not template.of_type("AWS::IAM::ManagedPolicy")


def test_nothing_travels_in_the_clear(template: Template) -> None:
    refused = {
        resource
        for statement in template.statements()
        if statement.effect == "Deny" and statement.conditions.get("Bool") == {"aws:SecureTransport": "false"}
        for resource in statement.resources
    }
    buckets, queues = template.of_type("AWS::S3::Bucket"), template.of_type("AWS::SQS::Queue")
    of_buckets = {f"<{bucket}.Arn>{rest}" for bucket in buckets for rest in ("", "/*")}
    assert refused == of_buckets | {f"<{queue}.Arn>" for queue in queues}
    for statement in template.statements():
        if statement.effect == "Deny":
            assert statement.principals == ["*"]
            assert len(statement.actions) == 1
            assert statement.actions[0] in ("s3:*", "sqs:*")


def _under(template: Template, *prefixes: str, bucket: str = "Bucket") -> set[str]:
    bucket, _ = template.bucket(bucket)
    return {f"<{bucket}.Arn>/{prefix}/*" for prefix in prefixes}


def _items(*keys: str) -> set[str]:
    return {f"items {key}" for key in keys}


def test_ingest_writes_and_reads_no_telemetry(template: Template) -> None:
    may = template.allowed("ingest")
    assert _actions(may) == {
        "dynamodb": {"GetItem", "PutItem", "UpdateItem"},
        "s3": {"PutObject", "GetObject", "ListBucket"},
        "sqs": {"SendMessage"},
        "ssm": {"GetParameter", "PutParameter"},
    }
    assert may["s3:PutObject"] == _under(template, "code")
    assert may["s3:GetObject"] == _under(template, "unused"), "the names of code that is about to go"
    assert may["dynamodb:GetItem"] == _items("token/*", "member/*", "policy/*", "cluster/*")
    assert may["dynamodb:PutItem"] == _items("cluster/*", "number/*")
    assert may["dynamodb:UpdateItem"] == _items("cluster/*", "account/*", "token/*")
    (using,) = [s for s in _allowed(template, "ingest", "dynamodb:UpdateItem") if "token/*" in str(s.conditions)]
    assert using.conditions == {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["token/*"]},
        "ForAllValues:StringEquals": {"dynamodb:Attributes": ["key", "used_on"]},
    }, "who it is of and what it may stays as it is"
    (making,) = _allowed(template, "ingest", "ssm:PutParameter")
    assert making.actions == ["ssm:PutParameter"]
    assert making.conditions == {"StringNotEquals": {"ssm:Overwrite": "true"}}, "code would be unreadable for good"


def test_write_adds_to_open_days_and_dead_letters_and_reads_one_item(template: Template) -> None:
    may = template.allowed("write")
    taking = {"ReceiveMessage", "ChangeMessageVisibility", "GetQueueUrl", "DeleteMessage", "GetQueueAttributes"}
    assert _actions(may) == {"dynamodb": {"GetItem"}, "s3": {"PutObject"}, "sqs": taking}
    assert may["s3:PutObject"] == _under(template, "open", "late", "dead")
    assert may["dynamodb:GetItem"] == {"items seals"}


def test_api_reads_the_lake_and_writes_into_it_what_was_done_and_nothing_else(template: Template) -> None:
    may = template.allowed("api")
    assert _actions(may) == {
        "dynamodb": {"GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem"},
        "s3": {"GetObject", "ListBucket", "PutObject", "DeleteObject", "AbortMultipartUpload"},
        "ssm": {"GetParameter"},
    }
    people = ("member/*", "joined/*", "ticket/*")
    assert may["dynamodb:PutItem"] == _items("token/*", "user/*", "peopled/*", *people, "report/*")
    assert may["dynamodb:BatchGetItem"] >= _items("token/*", "member/*", "ticket/*"), "what is listed of an account"
    assert may["dynamodb:UpdateItem"] == _items("cluster/*", "token/*", "policy/*", "report/*", "reporter/*")
    assert may["dynamodb:DeleteItem"] == _items(*people, "policy/*", "report/*")
    assert may["dynamodb:ConditionCheckItem"] == _items("member/*"), "another admin is there when one goes"
    lake, reports = _by_bucket(template, may)
    assert lake["s3:GetObject"] == _under(template, "open", "sealed", "rollups", "catalog", "prices", "code")
    assert lake["s3:PutObject"] == _under(template, "open/audit", "late")
    assert not lake.keys() & {"s3:DeleteObject", "s3:AbortMultipartUpload"}
    kept = _of_reports(template, "incoming", "public", "private")
    assert reports["s3:DeleteObject"] == kept
    assert reports["s3:GetObject"] == reports["s3:PutObject"] == kept | _of_reports(template, "shown")
    assert {each.rpartition("/index/")[2] for each in may["dynamodb:Query"]} == {"listing", "living"}


def test_sweep_sees_clusters_and_reports_and_nothing_else(template: Template) -> None:
    may = template.allowed("sweep")
    assert _actions(may) == {
        "dynamodb": {"GetItem", "BatchGetItem", "Query", "UpdateItem", "DeleteItem"},
        "s3": {"GetObject", "ListBucket", "PutObject", "DeleteObject", "AbortMultipartUpload"},
    }
    assert may["dynamodb:BatchGetItem"] == may["dynamodb:UpdateItem"] == _items("cluster/*", "report/*")
    assert may["dynamodb:GetItem"] == _items("policy/*")
    assert may["dynamodb:DeleteItem"] == _items("report/*")
    lake, reports = _by_bucket(template, may)
    assert not lake
    assert reports["s3:PutObject"] == _of_reports(template, "private"), "it makes none public"
    assert {each.rpartition("/index/")[2] for each in may["dynamodb:Query"]} == {"living", "listing"}


def test_compact_alone_may_take_away_from_the_lake_and_reads_neither_code_nor_keys(template: Template) -> None:
    may = template.allowed("compact")
    assert _actions(may) == {
        "dynamodb": {"GetItem", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem", "Query"},
        "s3": {"GetObject", "PutObject", "DeleteObject", "ListBucket"},
        "ssm": {"DeleteParameter"},
    }
    made = ("open", "sealed", "rollups", "catalog", "seals", "unused")
    lake, reports = _by_bucket(template, may)
    assert lake["s3:GetObject"] == _under(template, *made, "prices", "dead")
    assert lake["s3:PutObject"] == _under(template, *made, "late")
    assert lake["s3:DeleteObject"] == _under(template, *made, "prices", "code", "dead")
    assert reports == {"s3:DeleteObject": _of_reports(template, "incoming", "public", "private")}, "it reads none"
    assert may["dynamodb:GetItem"] == _items("seals", "policy/*", "cluster/*", "account/*")
    assert may["dynamodb:PutItem"] == _items("seals", "cluster/*")
    assert may["dynamodb:UpdateItem"] == _items("seals", "deletion/*", "policy/*")
    of_account = ("token", "ticket", "member", "joined", "peopled", "report", "reporter", "policy")
    gone = (f"{key}/*" for key in ("deletion", "cluster", "number", "account", *of_account))
    assert may["dynamodb:DeleteItem"] == _items(*gone)
    assert {each.rpartition("/index/")[2] for each in may["dynamodb:Query"]} == {"listing", "living"}
    for function in template.functions():
        if function != "compact":
            taking = {"s3:DeleteObject", "ssm:DeleteParameter"}
            assert not taking & _by_bucket(template, template.allowed(function))[0].keys(), function
            gone = template.allowed(function).get("dynamodb:DeleteItem", set())
            assert not gone & _items("deletion/*", "cluster/*", "number/*", "account/*", "token/*"), function


def test_cloudfront_alone_reads_reports_and_of_those_what_may_be_seen(template: Template) -> None:
    (distribution,) = template.of_type("AWS::CloudFront::Distribution")
    bucket, _ = template.bucket("ReportsBucket")
    outside = [s for s in _allowing(template) if s.owner == "AWS::S3::BucketPolicy"]
    (reading,) = outside
    assert (reading.principals, reading.actions) == (["cloudfront.amazonaws.com"], ["s3:GetObject"])
    assert set(reading.resources) == {f"<{bucket}.Arn>/public/*", f"<{bucket}.Arn>/shown/*"}
    arn = f"arn:<AWS::Partition>:cloudfront::<AWS::AccountId>:distribution/<{distribution}>"
    ((operator, told),) = reading.conditions.items()
    assert (operator, {name: flat(value) for name, value in told.items()}) == ("StringEquals", {"AWS:SourceArn": arn})


def _of_reports(template: Template, *prefixes: str) -> set[str]:
    return _under(template, *prefixes, bucket="ReportsBucket")


def _by_bucket(template: Template, may: dict[str, set[str]]) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """What may be done to objects of the lake, and to files of reports; lists of names left out."""
    found = tuple(
        {
            action: there
            for action, resources in may.items()
            if (there := {each for each in resources if each.startswith(f"<{template.bucket(output)[0]}.Arn>/")})
        }
        for output in ("Bucket", "ReportsBucket")
    )
    return found[0], found[1]


def _allowed(template: Template, function: str, action: str) -> list[Statement]:
    """What lets a function's role do that."""
    role = template.role(function)
    return [s for s in _allowing(template) if role in s.roles and action in s.actions]


def _actions(may: dict[str, set[str]]) -> dict[str, set[str]]:
    """What may be done to what is kept, by service."""
    found: dict[str, set[str]] = {}
    for action in may:
        service, _, name = action.partition(":")
        if service in STORES:
            found.setdefault(service, set()).add(name)
        else:
            assert service in ("kms", "logs"), action
    return found


def test_the_key_is_lent_for_what_a_function_may_touch_and_no_more(chosen: Template) -> None:
    (key,) = chosen.of_type("AWS::KMS::Key")
    for function in chosen.functions():
        through: set[str] = set()
        for statement in chosen.statements():
            if chosen.role(function) in statement.roles and any(a.startswith("kms:") for a in statement.actions):
                assert statement.resources == [f"<{key}.Arn>"]
                if via := statement.conditions.get("StringEquals", {}).get("kms:ViaService"):
                    through |= {flat(each).partition(".")[0] for each in (via if isinstance(via, list) else [via])}
                else:
                    # The CDK's own word for whoever receives from a queue.
                    assert (function, statement.actions) == ("write", ["kms:Decrypt"])
                    through.add("sqs")
        may = _actions(chosen.allowed(function))
        # Who only deletes keys reads and writes none.
        assert through == {each for each, actions in may.items() if actions != {"DeleteParameter"}}


def test_services_may_use_the_key_for_what_is_of_this_account_alone(chosen: Template) -> None:
    (key,) = chosen.properties("AWS::KMS::Key")
    services = [s for s in key["KeyPolicy"]["Statement"] if "Service" in s["Principal"]]
    (reports,) = (s for s in services if s["Principal"]["Service"] == "cloudfront.amazonaws.com")
    assert reports["Action"] == "kms:Decrypt"
    assert reports["Condition"]["StringEquals"] == {"AWS:SourceAccount": {"Ref": "AWS::AccountId"}}
    (logs,) = (s for s in services if s is not reports)
    assert flat(logs["Principal"]["Service"]) == "logs.<AWS::Region>.amazonaws.com"
    groups = "arn:<AWS::Partition>:logs:<AWS::Region>:<AWS::AccountId>:log-group:*"
    ((operator, told),) = logs["Condition"].items()
    assert (operator, {name: flat(arn) for name, arn in told.items()}) == (
        "ArnLike",
        {"kms:EncryptionContext:aws:logs:arn": groups},
    )


def test_without_a_key_of_ones_own_none_is_spoken_of(plain: Template) -> None:
    assert not [action for statement in plain.statements() for action in statement.actions if action.startswith("kms:")]


def test_a_reference_that_is_no_text_is_not_taken_for_one() -> None:
    with pytest.raises(ValueError, match="is no text"):
        flat({"Fn::Sub": "arn:${AWS::Partition}:s3:::*"})
