"""What the template says, as it is by itself (`plain`) and with every setting other than that (`chosen`)."""

import itertools
import json
import re
from typing import Any

import pytest

from daskscope import wire
from daskscope_infra.lake_tables import BULKY, prefix
from daskscope_infra.policies import flat
from daskscope_lambdas import registry
from daskscope_lambdas.env import AwsEnv, read
from tests.infra.template import Template

HANDLERS = {"ingest", "write", "api", "sweep", "compact"}
SHAPES = {
    # A message of 16 MiB unpacked beside 140 MB of imports; its sender waits for the answer.
    "ingest": (512, 15, 512),
    # A thousand messages as columns; SQS hides a batch for six times as long.
    "write": (1024, 60, 512),
    # A whole core, so that a page is soon there; API Gateway gives up after 30 seconds.
    "api": (1769, 29, 512),
    # Ten thousand rows, and done before the next one.
    "sweep": (256, 50, 512),
    # The largest day of the largest account is sorted; what memory cannot hold goes to /tmp. 900 is Lambda's most.
    "compact": (3008, 900, 2048),
}
"""What each function is given: MiB of memory, seconds, MiB under /tmp."""


@pytest.fixture(params=["plain", "chosen"])
def template(request: pytest.FixtureRequest) -> Template:
    """Either of the two."""
    return request.getfixturevalue(request.param)


def test_each_handler_is_a_function_for_the_chosen_machine(plain: Template, chosen: Template) -> None:
    assert plain.functions().keys() == chosen.functions().keys() == HANDLERS
    assert {(*f["Architectures"], f["Runtime"]) for f in plain.functions().values()} == {("arm64", "python3.13")}
    assert {(*f["Architectures"], f["Runtime"]) for f in chosen.functions().values()} == {("x86_64", "python3.12")}


def test_only_what_reads_and_writes_parquet_carries_the_heavy_code(template: Template) -> None:
    code = {name: function["Code"]["ZipFile"] for name, function in template.functions().items()}
    light, heavy = "# light", "# heavy"
    assert code == {"ingest": light, "sweep": light, "write": heavy, "api": heavy, "compact": heavy}


def test_each_function_has_a_role_and_a_log_of_its_own(template: Template) -> None:
    functions = template.functions()
    roles = {template.role(name) for name in functions}
    logs = {function["LoggingConfig"]["LogGroup"]["Ref"] for function in functions.values()}
    assert len(roles) == len(logs) == len(functions)
    for name, function in functions.items():
        policies = [p for p in template.properties("AWS::IAM::Policy") if {"Ref": template.role(name)} in p["Roles"]]
        assert [len(policy["Roles"]) for policy in policies] == [1]
        own = {f"<{function['LoggingConfig']['LogGroup']['Ref']}.Arn>"}
        assert template.allowed(name)["logs:PutLogEvents"] == own


def test_logs_forget(plain: Template, chosen: Template) -> None:
    for template, days in ((plain, 30), (chosen, 7)):
        groups = template.properties("AWS::Logs::LogGroup")
        assert [group["RetentionInDays"] for group in groups] == [days] * (len(HANDLERS) + 1)


def test_each_function_has_what_its_work_takes(template: Template) -> None:
    functions = template.functions()
    told = {name: (f["MemorySize"], f["Timeout"], f["EphemeralStorage"]["Size"]) for name, f in functions.items()}
    assert told == SHAPES


def test_logs_hold_what_daskscope_says_and_of_lambda_only_what_went_wrong(template: Template) -> None:
    for function in template.functions().values():
        told = {name: value for name, value in function["LoggingConfig"].items() if name != "LogGroup"}
        assert told == {"LogFormat": "JSON", "ApplicationLogLevel": "INFO", "SystemLogLevel": "WARN"}


def test_functions_find_in_their_environment_what_the_stack_made(plain: Template, chosen: Template) -> None:
    for template in (plain, chosen):
        for function in template.functions().values():
            told = read({name: flat(value) for name, value in function["Environment"]["Variables"].items()})
            assert isinstance(told, AwsEnv)
            outputs = template.outputs()
            assert told == AwsEnv(
                bucket=outputs["Bucket"],
                table=outputs["Table"],
                queue_url=outputs["QueueUrl"],
                keys=outputs["Keys"],
                keys_kms_key=outputs.get("KeysKmsKey", ""),
                reports_bucket=outputs["ReportsBucket"],
                reports=outputs["Reports"],
            )


def test_the_outputs_are_what_deploy_and_the_users_of_a_stack_read(plain: Template, chosen: Template) -> None:
    always = {"Address", "Bucket", "Reports", "ReportsBucket", "Table", "QueueUrl", "DeadLetterQueueUrl", "Keys"}
    assert plain.outputs().keys() == always
    assert chosen.outputs().keys() == always | {"KeysKmsKey"}


def test_keys_are_of_this_stack_and_of_no_later_one_of_its_name(template: Template) -> None:
    uuid = flat({"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]})
    assert template.outputs()["Keys"] == f"/daskscope/<AWS::StackName>/{uuid}/keys"


def test_the_api_has_a_route_for_messages_and_one_for_all_else(template: Template) -> None:
    routes = {route["RouteKey"]: route for route in template.properties("AWS::ApiGatewayV2::Route")}
    assert routes.keys() == {f"POST {wire.PATH}", "$default"}
    assert _called_by(template, routes[f"POST {wire.PATH}"]) == "ingest"
    assert _called_by(template, routes["$default"]) == "api"
    for permission in template.properties("AWS::Lambda::Permission"):
        assert permission["Principal"] == "apigateway.amazonaws.com"
        assert "SourceArn" in permission


def test_nobody_without_a_token_can_use_up_the_concurrency_that_ingest_needs(template: Template) -> None:
    stage = template.one("AWS::ApiGatewayV2::Stage")
    told = stage["Properties"]
    assert told["DefaultRouteSettings"] == {"ThrottlingRateLimit": 50, "ThrottlingBurstLimit": 100}
    own = {"ThrottlingRateLimit": 2000, "ThrottlingBurstLimit": 1000}
    assert told["RouteSettings"] == {f"POST {wire.PATH}": own}
    # API Gateway knows a route's settings only once it knows the route.
    routes = template.of_type("AWS::ApiGatewayV2::Route").items()
    (telemetry,) = (name for name, route in routes if route["Properties"]["RouteKey"] in told["RouteSettings"])
    assert telemetry in stage["DependsOn"]
    # A share of the account's concurrency that is set aside would be refused in a new account, which has little.
    assert not [f for f in template.functions().values() if "ReservedConcurrentExecutions" in f]


def _called_by(template: Template, route: dict[str, Any]) -> str:
    """The handler behind a route."""
    integration = route["Target"]["Fn::Join"][1][1]["Ref"]
    uri = template.body["Resources"][integration]["Properties"]
    assert uri["PayloadFormatVersion"] == "2.0"
    function = template.body["Resources"][uri["IntegrationUri"]["Fn::GetAtt"][0]]
    return function["Properties"]["Handler"].split(".")[2]


def test_access_logs_hold_no_query_string_and_no_header(template: Template) -> None:
    (stage,) = template.properties("AWS::ApiGatewayV2::Stage")
    assert (stage["StageName"], stage["AutoDeploy"]) == ("$default", True)
    told = json.loads(stage["AccessLogSettings"]["Format"])
    assert set(told.values()) == {
        f"$context.{name}"
        for name in (
            "requestTime",
            "requestId",
            "identity.sourceIp",
            "httpMethod",
            "path",  # as asked for, without what comes after `?`
            "status",
            "responseLength",
            "responseLatency",
            "integrationErrorMessage",
        )
    }
    assert stage["AccessLogSettings"]["DestinationArn"]["Fn::GetAtt"][0] in template.of_type("AWS::Logs::LogGroup")


def test_nothing_public_about_a_bucket(template: Template) -> None:
    for bucket in template.properties("AWS::S3::Bucket"):
        _is_private(bucket)


def _is_private(bucket: dict[str, Any]) -> None:
    assert bucket["PublicAccessBlockConfiguration"] == dict.fromkeys(
        ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"), True
    )
    assert bucket["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    assert not bucket.keys() & {"AccessControl", "WebsiteConfiguration", "CorsConfiguration", "VersioningConfiguration"}


def test_each_table_has_its_life(plain: Template, chosen: Template) -> None:
    rarely_read = [{"StorageClass": "STANDARD_IA", "TransitionInDays": 60}]
    assert _lives(plain) == {prefix(name): (rarely_read, None) for name in BULKY}
    assert _lives(chosen) == {
        **{prefix(name): (rarely_read, None) for name in BULKY},
        prefix("samples"): (rarely_read, 400),
        prefix("workers"): (None, 45),  # goes before the other class would pay
        prefix("clusters_daily"): (None, 800),
    }
    for template in (plain, chosen):
        _, bucket = template.bucket()
        assert bucket["LifecycleConfiguration"]["TransitionDefaultMinimumObjectSize"] == "all_storage_classes_128K"
        everywhere = [rule for rule in bucket["LifecycleConfiguration"]["Rules"] if "Prefix" not in rule]
        assert [rule["AbortIncompleteMultipartUpload"] for rule in everywhere] == [{"DaysAfterInitiation": 1}]
        assert not {"Transitions", "ExpirationInDays"} & everywhere[0].keys()


def _lives(template: Template) -> dict[str, tuple[Any, int | None]]:
    """By prefix, the transitions and the end."""
    _, bucket = template.bucket()
    rules = bucket["LifecycleConfiguration"]["Rules"]
    assert {rule["Status"] for rule in rules} == {"Enabled"}
    return {r["Prefix"]: (r.get("Transitions"), r.get("ExpirationInDays")) for r in rules if "Prefix" in r}


def test_the_table_has_the_shape_of_the_registry(template: Template) -> None:
    table = template.one("AWS::DynamoDB::Table")["Properties"]
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["KeySchema"] == [{"AttributeName": registry.KEY, "KeyType": "HASH"}]
    assert table["TimeToLiveSpecification"] == {"AttributeName": registry.FORGET_AT, "Enabled": True}
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    indexes = {i["IndexName"]: [k["AttributeName"] for k in i["KeySchema"]] for i in table["GlobalSecondaryIndexes"]}
    assert indexes == {
        registry.LISTING: [registry.LISTED_IN, registry.LISTED_AT],
        registry.LIVING: [registry.LIVES_IN],
    }
    assert {i["Projection"]["ProjectionType"] for i in table["GlobalSecondaryIndexes"]} == {"KEYS_ONLY"}
    assert {a["AttributeType"] for a in table["AttributeDefinitions"]} == {"S"}


def test_the_queue_hands_batches_to_write(plain: Template, chosen: Template) -> None:
    for template, batch, window_s in ((plain, 1000, 60), (chosen, 10, 0)):
        mapping = template.one("AWS::Lambda::EventSourceMapping")["Properties"]
        assert (mapping["BatchSize"], mapping["MaximumBatchingWindowInSeconds"]) == (batch, window_s)
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert 2 <= mapping["ScalingConfig"]["MaximumConcurrency"] <= 10
        queue = template.body["Resources"][mapping["EventSourceArn"]["Fn::GetAtt"][0]]["Properties"]
        assert queue["VisibilityTimeout"] >= 6 * template.functions()["write"]["Timeout"] + window_s
        assert template.body["Resources"][mapping["FunctionName"]["Ref"]]["Properties"]["Handler"].endswith(
            "write.handler"
        )


def test_what_nobody_can_keep_ends_among_the_dead_letters(template: Template) -> None:
    queues = template.of_type("AWS::SQS::Queue")
    (live,) = (name for name, queue in queues.items() if "RedrivePolicy" in queue["Properties"])
    (dead,) = queues.keys() - {live}
    redrive = queues[live]["Properties"]["RedrivePolicy"]
    assert redrive == {"deadLetterTargetArn": {"Fn::GetAtt": [dead, "Arn"]}, "maxReceiveCount": 10}
    assert {queue["Properties"]["MessageRetentionPeriod"] for queue in queues.values()} == {14 * 86_400}
    assert template.outputs()["DeadLetterQueueUrl"] == f"<{dead}>"


def test_schedules_call_and_do_not_call_again(template: Template) -> None:
    rates: dict[str, str] = {}
    for schedule in template.properties("AWS::Scheduler::Schedule"):
        function = schedule["Target"]["Arn"]["Fn::GetAtt"][0]
        name = template.body["Resources"][function]["Properties"]["Handler"].split(".")[2]
        rates[name] = schedule["ScheduleExpression"]
        assert schedule["Target"]["RetryPolicy"]["MaximumRetryAttempts"] == 0
        assert schedule["State"] == "ENABLED"
        (asked,) = (
            c for c in template.properties("AWS::Lambda::EventInvokeConfig") if c["FunctionName"] == {"Ref": function}
        )
        assert asked["MaximumRetryAttempts"] == 0
        (every_min,) = re.findall(r"\d+", schedule["ScheduleExpression"])
        assert template.functions()[name]["Timeout"] <= 60 * int(every_min), "no two runs at once"
    assert rates == {"sweep": "rate(1 minute)", "compact": "rate(15 minutes)"}


def test_api_and_ingest_answer_before_the_gateway_gives_up(template: Template) -> None:
    assert all(template.functions()[name]["Timeout"] < 30 for name in ("ingest", "api"))


def test_all_is_encrypted_by_aws_unless_a_key_is_wanted(plain: Template) -> None:
    for bucket in plain.properties("AWS::S3::Bucket"):
        (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert rule["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    assert all(queue["SqsManagedSseEnabled"] for queue in plain.properties("AWS::SQS::Queue"))
    # Tables and logs have no switch: without a key of one's own they are under one of AWS's.
    assert "SSESpecification" not in plain.one("AWS::DynamoDB::Table")["Properties"]
    assert not plain.of_type("AWS::KMS::Key")


def test_a_key_of_ones_own_encrypts_all_that_is_kept(chosen: Template) -> None:
    ((name, key),) = chosen.of_type("AWS::KMS::Key").items()
    assert key["Properties"]["EnableKeyRotation"] is True
    mine = {"Fn::GetAtt": [name, "Arn"]}
    for bucket in chosen.properties("AWS::S3::Bucket"):
        (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert rule["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": mine}
        assert rule["BucketKeyEnabled"] is True
    table = chosen.one("AWS::DynamoDB::Table")["Properties"]["SSESpecification"]
    assert table == {"KMSMasterKeyId": mine, "SSEEnabled": True, "SSEType": "KMS"}
    assert [queue["KmsMasterKeyId"] for queue in chosen.properties("AWS::SQS::Queue")] == [mine] * 2
    assert all(group["KmsKeyId"] == mine for group in chosen.properties("AWS::Logs::LogGroup"))
    assert chosen.outputs()["KeysKmsKey"] == f"<{name}.Arn>"


def test_data_stays_behind_unless_it_may_go(plain: Template, chosen: Template) -> None:
    kept = ("AWS::S3::Bucket", "AWS::DynamoDB::Table", "AWS::KMS::Key")
    for template, policy in ((plain, "Retain"), (chosen, "Delete")):
        found = itertools.chain.from_iterable(template.of_type(kind).values() for kind in kept)
        assert {(r["DeletionPolicy"], r["UpdateReplacePolicy"]) for r in found} == {(policy, policy)}
    assert plain.one("AWS::DynamoDB::Table")["Properties"]["DeletionProtectionEnabled"] is True
    assert chosen.one("AWS::DynamoDB::Table")["Properties"]["DeletionProtectionEnabled"] is False
