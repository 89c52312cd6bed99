"""What the permissions of a node allow, which any job on a compute node has, and what they do not.

The cluster has login nodes, and a bootstrap of its own with a customer's key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from emulator.aws import ACCOUNT, EmulatedAws
from tests.scripts.operated import Operated
from tests.stacks.deployments import Raw, edited
from tests.stacks.small_app import flat

pytestmark = pytest.mark.slow

REGION = "us-west-2"
BUCKET = f"cdk-ml-team-assets-{ACCOUNT}-{REGION}"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
BUNDLE_OF_OTHERS = f"{'0' * 64}.zip"
GOLDEN = Path(__file__).parent / "golden/permissions.txt"
KINDS = {"head node": "-RoleHeadNode-", "login nodes": "-LoginNodesNested-", "compute nodes": "-ComputeFleetQueu-"}


def with_everything(raw: Raw) -> None:
    raw["cluster"]["login_nodes"] = [{"name": "login"}]
    raw["bootstrap"] = {"qualifier": "ml-team", "kms_key_arn": KEY}


@pytest.fixture(scope="module")
def account(boto3_data: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operated]:
    with EmulatedAws() as aws:
        yield Operated(aws, edited("trn1-16", with_everything), tmp_path_factory.mktemp("permissions"))


@pytest.fixture(scope="module")
def roles(account: Operated) -> dict[str, str]:
    listed = account.client("iam").list_roles(PathPrefix="/parallelcluster/trn1-16/")["Roles"]
    arns = {kind: [each["Arn"] for each in listed if part in each["Arn"]] for kind, part in KINDS.items()}
    return {kind: arn for kind, [arn] in arns.items()}


class Node:
    """What a process on a node can do with the node's credentials."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        self._session = boto3.Session(*(environment[name] for name in names), region_name=REGION)
        self._endpoint = environment["AWS_ENDPOINT_URL"]

    def ask(self, service: str, operation: str, **parameters: Any) -> Any:
        return getattr(self._session.client(service, endpoint_url=self._endpoint), operation)(**parameters)

    def is_denied(self, service: str, operation: str, **parameters: Any) -> bool:
        try:
            self.ask(service, operation, **parameters)
        except ClientError as error:
            return error.response["Error"]["Code"] in ("AccessDenied", "AccessDeniedException")
        return False

    def fetch(self, *addresses: str) -> None:
        """Read objects in S3, as `aws s3 cp` does."""
        for address in addresses:
            bucket, _, key = address.removeprefix("s3://").partition("/")
            self.ask("s3", "get_object", Bucket=bucket, Key=key)["Body"].read()


def addresses(action: Mapping[str, Any]) -> list[str]:
    """Return what an action of a node reads in S3: its script, and what its arguments name."""
    texts = [flat(action["Script"]), *map(flat, action["Args"])]
    in_s3 = [text[text.index("s3://") :] for text in texts if "s3://" in text]
    return [each.replace("${AWS::AccountId}", ACCOUNT) for each in in_s3]


def test_a_job_on_a_compute_node_reads_what_its_node_needs_and_nothing_else(
    account: Operated, roles: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    account.act_as(account.environment, monkeypatch)
    parameters = ("/ultracluster/trn1-16/HeadNode", "/ultracluster/other/HeadNode", "/database/password")
    for name in parameters[1:]:
        account.client("ssm").put_parameter(Name=name, Value="theirs", Type="SecureString")
    account.client("s3").put_object(Bucket=BUCKET, Key=BUNDLE_OF_OTHERS, Body=b"a bundle")
    secret = account.client("secretsmanager").create_secret(Name="slurm-accounting", SecretString="theirs")["ARN"]
    command = {
        "InstanceIds": [account.head_node],
        "DocumentName": "AWS-RunShellScript",
        "Parameters": {"commands": ["id"]},
    }
    attacks: list[tuple[str, str, dict[str, Any]]] = [
        *(("ssm", "get_parameter", {"Name": name, "WithDecryption": True}) for name in parameters),
        ("ssm", "get_parameters", {"Names": ["/database/password"], "WithDecryption": True}),
        ("ssm", "get_parameters_by_path", {"Path": "/", "Recursive": True}),
        ("ssm", "send_command", command),
        ("ssm", "start_session", {"Target": account.head_node}),
        ("s3", "get_object", {"Bucket": BUCKET, "Key": BUNDLE_OF_OTHERS}),
        ("s3", "list_objects_v2", {"Bucket": BUCKET}),
        ("secretsmanager", "get_secret_value", {"SecretId": secret}),
        ("sts", "assume_role", {"RoleArn": roles["head node"], "RoleSessionName": "job"}),
    ]

    with account.aws.in_role(roles["compute nodes"]) as environment:
        job = Node(environment)
        [queue] = account.synthesized.queues
        job.fetch(*addresses(queue["CustomActions"]["OnNodeConfigured"]))
        passed = [attack for attack in attacks if not job.is_denied(attack[0], attack[1], **attack[2])]

    assert passed == []


@pytest.mark.parametrize(("kind", "name"), [("head node", "HeadNode"), ("login nodes", "LoginNodes")])
def test_a_launcher_reads_its_own_parameter_and_what_it_names(
    kind: str, name: str, account: Operated, roles: dict[str, str]
) -> None:
    configuration = account.synthesized.configuration
    node = configuration["HeadNode"] if name == "HeadNode" else configuration["LoginNodes"]["Pools"][0]
    launcher = node["CustomActions"]["OnNodeConfigured"]
    other = {"HeadNode": "LoginNodes", "LoginNodes": "HeadNode"}[name]

    with account.aws.in_role(roles[kind]) as environment:
        started = Node(environment)
        started.fetch(*addresses(launcher))
        run = json.loads(started.ask("ssm", "get_parameter", Name=launcher["Args"][0])["Parameter"]["Value"])
        started.fetch(*addresses({"Script": run["script"], "Args": run["arguments"]}))

        assert started.is_denied("ssm", "get_parameter", Name=f"/ultracluster/trn1-16/{other}")
        assert started.is_denied("s3", "get_object", Bucket=BUCKET, Key=f"{'1' * 64}.zip")


# --- the golden file: every role in the account; tests/snapshots/pipeline has those of pipelines ---


class Printer:
    """Writes policies of roles, an action or resource a line, with names for what is another one each time."""

    def __init__(self, account: Operated) -> None:
        self._iam = account.client("iam")
        manifests = account.synthesized.directory.glob("*.assets.json")
        files = [json.loads(path.read_text(encoding="utf-8"))["files"] for path in manifests]
        self._names = {asset_hash: asset["displayName"] for each in files for asset_hash, asset in each.items()}

    def role(self, arn: str) -> Iterator[str]:
        name = arn.rpartition("/")[2]
        yield f"\n{self._plain(arn)}"
        attached = self._iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
        for policy in sorted(each["PolicyArn"] for each in attached):
            yield f"  {self._plain(policy)}"
            if not policy.startswith("arn:aws:iam::aws:"):
                version = self._iam.get_policy(PolicyArn=policy)["Policy"]["DefaultVersionId"]
                described = self._iam.get_policy_version(PolicyArn=policy, VersionId=version)
                yield from self._statements(described["PolicyVersion"]["Document"])
        for inline in sorted(self._iam.list_role_policies(RoleName=name)["PolicyNames"]):
            yield f"  {inline} (in the role)"
            yield from self._statements(self._iam.get_role_policy(RoleName=name, PolicyName=inline)["PolicyDocument"])

    def _statements(self, document: Mapping[str, Any]) -> Iterator[str]:
        for statement in document["Statement"]:
            actions, resources = (
                sorted(map(self._plain, [values] if isinstance(values, str) else values))
                for values in (statement["Action"], statement["Resource"])
            )
            yield from (f"    {statement['Effect'].lower()} {each}" for each in actions)
            yield from (f"      on {each}" for each in resources)
            if "Condition" in statement:
                yield f"      if {json.dumps(statement['Condition'], sort_keys=True)}"

    def _plain(self, text: str) -> str:
        for asset_hash, name in self._names.items():
            text = text.replace(asset_hash, f"<{name}>")
        text = re.sub(r"\b(subnet|ami|sg)-[0-9a-f]{8,17}\b", r"\1-<id>", text)
        text = re.sub(r"(?<=hostedzone/)\w+", "<id>", text)
        text = re.sub(r"(?<=stack/)(.+)/[0-9a-f-]{36}$", r"\1/<id>", text)
        return re.sub(r"-([A-Za-z0-9]{12}|[a-z0-9]{16})(?=$|/|:)", "-<random>", text)


def test_the_permissions_of_every_role_are_as_in_the_golden_file(
    account: Operated, pytestconfig: pytest.Config
) -> None:
    printer = Printer(account)
    arns = [role["Arn"] for role in account.client("iam").list_roles()["Roles"]]
    written = sorted("\n".join(printer.role(arn)) for arn in arns if "/aws-service-role/" not in arn)

    text = "\n".join(["What roles may do: config/trn1-16.yaml with login nodes, own bootstrap", *written, ""])

    if pytestconfig.getoption("update_snapshots"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text.splitlines() == GOLDEN.read_text(encoding="utf-8").splitlines(), "meant? `make snapshots`, and review"
