"""What people can open on nodes by Session Manager with the policy that the documentation gives them.

Systems Manager's agent connects to ports as root, whoever opens the session, and the nodes' firewall lets root to the
tunnels to EFS, which believes any client. So IAM alone keeps people from all homes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from emulator.moto_patches.ssm import DEFAULT_SESSION_DOCUMENT, SESSION_DOCUMENTS
from nodes.team.users import NFS_PORT
from tests.config.test_users import ALICE
from tests.stacks.deployments import deploy, edited

ROOT = Path(__file__).parents[2]
CLUSTER, OTHER_CLUSTER = "trn1-16", "trn1-16-2"
NAMES = {"REGION": "us-west-2", "ACCOUNT": "111122223333", "CLUSTER": CLUSTER}
KINDS = ("HeadNode", "LoginNode", "Compute")
ALICE_ID = "AROAEXAMPLE:alice"
FIRST, LAST = 20049, 21049
"""As efs-utils.conf comes (https://github.com/aws/efs-utils/blob/v3.1.3/dist/efs-utils.conf)."""
CLOSED = {NFS_PORT, *range(FIRST, LAST + 1)}
COMPARISONS: dict[str, Callable[[str, str], bool]] = {
    "Bool": str.__eq__,
    "StringEquals": str.__eq__,
    "StringLike": fnmatchcase,
}


@dataclass(frozen=True)
class Policy:
    """The statements of somebody's only policy. An operator that these tests do not know is a KeyError.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
    """

    statements: list[dict[str, Any]]
    variables: Mapping[str, str]

    def allows(self, action: str, resource: str, context: Mapping[str, str] | None = None) -> bool:
        effects = {
            each["Effect"]
            for each in self.statements
            if self._has(each["Action"], action)
            and self._has(each["Resource"], resource)
            and all(self._holds(name, keys, context or {}) for name, keys in each.get("Condition", {}).items())
        }
        return effects == {"Allow"}

    def may_start(self, document: str | None, kind: str, cluster: str = CLUSTER) -> bool:
        """Tell whether AWS starts a session with a document on a node; None: the request names none.

        https://docs.aws.amazon.com/systems-manager/latest/userguide/getting-started-sessiondocumentaccesscheck.html
        """
        has_document = self.allows("ssm:StartSession", arn_of(document or DEFAULT_SESSION_DOCUMENT))
        tags = {"cluster-name": cluster, "node-type": kind}
        context = {f"ssm:resourceTag/parallelcluster:{key}": value for key, value in tags.items()}
        context["ssm:SessionDocumentAccessCheck"] = str(has_document).lower()
        node = "arn:aws:ec2:us-west-2:111122223333:instance/i-0123456789abcdef0"
        return self.allows("ssm:StartSession", node, context) and (has_document or document is None)

    def _holds(self, operator: str, wanted: Mapping[str, Any], context: Mapping[str, str]) -> bool:
        compare = COMPARISONS[operator.removesuffix("IfExists")]
        return all(
            any(compare(context[key], each) for each in self._filled(values))
            if key in context
            else operator.endswith("IfExists")
            for key, values in wanted.items()
        )

    def _has(self, patterns: str | list[str], value: str) -> bool:
        return any(fnmatchcase(value, each) for each in self._filled(patterns))

    def _filled(self, values: str | list[str]) -> Iterator[str]:
        for value in listed(values):
            yield re.sub(r"\$\{(.*?)\}", lambda found: self.variables[found[1]], value)


def arn_of(document: str) -> str:
    account = "" if document.startswith("AWS-") else "111122223333"
    return f"arn:aws:ssm:us-west-2:{account}:document/{document}"


def listed(value: str | list[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else value or []


def ports(content: Mapping[str, Any]) -> Iterable[int]:
    """Return the ports that a document's sessions lead to, for whoever chooses its parameters."""
    if content["sessionType"] != "Port":
        return ()
    port = content["properties"]["portNumber"]
    return range(1, 65536) if "{{" in port else (int(port),)


@pytest.fixture(scope="module")
def policy() -> Policy:
    """Return the policy of the page, as that of a person of a cluster."""
    page = (ROOT / "docs" / "reference" / "permissions.md").read_text(encoding="utf-8")
    section = page.partition("\n## People\n")[2].partition("\n## ")[0]
    [text] = re.findall(r"^```json\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    filled = re.sub("|".join(NAMES), lambda found: NAMES[found[0]], text)
    return Policy(json.loads(filled)["Statement"], {"aws:userid": ALICE_ID, "aws:username": "alice"})


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the session documents of a cluster with users, by name."""
    settings = edited(CLUSTER, lambda raw: raw.update(users=[ALICE]))
    cluster = deploy(settings, tmp_path_factory.mktemp("users")).cluster
    made = [each["Properties"] for each in cluster.of_type("AWS::SSM::Document").values()]
    return {each["Name"]: each["Content"] for each in made}


def test_people_reach_no_port_of_a_node_but_that_of_ssh(policy: Policy, own: dict[str, Any]) -> None:
    others = {each.replace(CLUSTER, OTHER_CLUSTER): content for each, content in own.items()}
    documents: dict[str | None, Any] = dict({**SESSION_DOCUMENTS, **own, **others}.items())
    documents[None] = SESSION_DOCUMENTS[DEFAULT_SESSION_DOCUMENT]
    started = {(kind, each) for kind in KINDS for each in documents if policy.may_start(each, kind)}
    opened = {port for _, document in started for port in ports(documents[document])}
    assert not opened & CLOSED, "the homes of all, as root"
    assert opened == {22}
    assert started == {(kind, document) for kind in ("HeadNode", "LoginNode") for document in own}
    assert not [each for each in documents for kind in KINDS if policy.may_start(each, kind, OTHER_CLUSTER)]


def test_a_session_of_the_cluster_takes_nothing_from_who_opens_it(own: dict[str, Any]) -> None:
    assert {each["sessionType"] for each in own.values()} == {"Standard_Stream", "Port"}
    assert "{{" not in json.dumps(own)
    assert not [name for name, each in own.items() if "parameters" in each]


def test_people_may_do_nothing_else(policy: Policy) -> None:
    session = botocore.session.get_session()
    actions = [
        f"{service}:{operation}"
        for service in ("ec2", "ec2-instance-connect", "iam", "ssm", "ssm-guiconnect", "sts")
        for operation in session.get_service_model(service).operation_names
    ]
    named = {pattern for each in policy.statements for pattern in listed(each["Action"])}
    assert {action for action in actions for each in named if fnmatchcase(action, each)} == {
        "ec2:DescribeInstances", "ssm:ResumeSession", "ssm:StartSession", "ssm:TerminateSession"
    }  # fmt: skip
    assert named - set(actions) == {"ssmmessages:OpenDataChannel"}, "which the SDK does not know"


@pytest.mark.parametrize("action", ["ssm:ResumeSession", "ssm:TerminateSession"])
@pytest.mark.parametrize(
    ("starter", "name", "own"),
    [
        (ALICE_ID, "alice", True),
        (f"{ALICE_ID}-smith", "alice-smith", False),
        ("AROAEXAMPLE:bob", "bob", False),
        ("AROAOTHER:alice", "alice", False),
    ],
)
def test_a_session_is_resumed_and_ended_by_who_started_it(
    policy: Policy, action: str, starter: str, name: str, own: bool
) -> None:
    """The tag is Session Manager's, the id starts with the name of the user or of the role's session.

    https://docs.aws.amazon.com/systems-manager/latest/userguide/getting-started-restrict-access-examples.html
    """
    tags = {"ssm:resourceTag/aws:ssmmessages:session-id": starter}
    arn = f"arn:aws:ssm:us-west-2:111122223333:session/{name}-0a1b2c3d4e5f"
    assert policy.allows(action, arn, tags) is own


def test_no_policy_that_is_deployed_opens_sessions() -> None:
    opening = []
    for path in sorted((ROOT / "tests" / "snapshots").rglob("*.json")):
        rest = [json.loads(path.read_text(encoding="utf-8"))]
        while rest:
            part = rest.pop()
            rest += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
            if isinstance(part, dict) and part.get("Effect") == "Allow":
                opening += [
                    (path, part) for each in listed(part.get("Action")) if fnmatchcase("ssm:StartSession", each)
                ]
    assert opening == []
