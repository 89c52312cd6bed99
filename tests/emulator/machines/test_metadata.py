"""What an instance is told about itself, and the names that it can look up: both held to AWS's documentation."""

from __future__ import annotations

import base64
import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from dnslib import QTYPE, RCODE, DNSRecord
from moto.core.types import Base64EncodedString
from moto.ec2.models import ec2_backends
from moto.iam.models import iam_backends
from moto.route53.models import route53_backends

from emulator.aws import ACCOUNT
from emulator.machines import metadata, names

REGION = "us-west-2"
USER_DATA = b"Content-Type: multipart/mixed\n\n\xff\x00 not text"


@pytest.fixture
def instance() -> Iterator[Any]:
    ec2, iam = ec2_backends[ACCOUNT][REGION], iam_backends[ACCOUNT]["aws"]
    vpc = ec2.create_vpc("10.0.0.0/16")
    subnet = ec2.create_subnet(vpc.id, "10.0.0.0/24", availability_zone=f"{REGION}b")
    encoded = Base64EncodedString.from_encoded_bytes(base64.b64encode(USER_DATA))
    reservation = ec2.run_instances(
        "ami-0", 1, encoded, [], instance_type="trn1.32xlarge", subnet_id=subnet.id, is_instance_type_default=True,
        region_name=REGION,
    )  # fmt: skip
    [launched] = reservation.instances
    iam.create_role("node-role", "{}", "/", "", "", [], "3600")
    iam.create_instance_profile("node", "/", ["node-role"])
    ec2.associate_iam_instance_profile(launched.id, iam_instance_profile_name="node")
    yield launched
    for backends in (ec2_backends, iam_backends, route53_backends):
        backends[ACCOUNT].reset()


class Client:
    """What asks the metadata service, by a real socket."""

    def __init__(self, address: str) -> None:
        self._address = address

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(f"http://{self._address}{path}", headers=named, method=method)
        try:
            with urllib.request.urlopen(request) as answer:  # noqa: S310
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def token(self, seconds: str = "60") -> str:
        status, token = self.ask("/latest/api/token", "PUT", X_aws_ec2_metadata_token_ttl_seconds=seconds)
        assert status == 200
        return token.decode()

    def value(self, path: str) -> str:
        status, value = self.ask(path, X_aws_ec2_metadata_token=self.token())
        assert status == 200, path
        return value.decode()


@pytest.fixture
def client(instance: Any) -> Iterator[Client]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = metadata.serve(listener, REGION, instance.id)
        yield Client(f"127.0.0.1:{listener.getsockname()[1]}")
        server.shutdown()


def test_each_request_needs_a_token(client: Client) -> None:
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html, response codes
    path = "/latest/meta-data/instance-id"
    assert client.ask(path)[0] == 401
    assert client.ask(path, X_aws_ec2_metadata_token="other")[0] == 401  # noqa: S106 - no password
    assert client.ask("/latest/api/token", "PUT")[0] == 400
    for ttl in ("0", "21601", "a"):
        assert client.ask("/latest/api/token", "PUT", X_aws_ec2_metadata_token_ttl_seconds=ttl)[0] == 400
    forwarded = {"X_aws_ec2_metadata_token_ttl_seconds": "60", "X_Forwarded_For": "10.0.0.1"}
    assert client.ask("/latest/api/token", "PUT", **forwarded)[0] == 403
    assert client.ask(path, X_aws_ec2_metadata_token=client.token("21600"))[0] == 200


def test_a_token_expires(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    token, now = client.token("60"), time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 61)
    assert client.ask("/latest/meta-data/", X_aws_ec2_metadata_token=token)[0] == 401


def test_an_instance_knows_itself(client: Client, instance: Any) -> None:
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-metadata.html
    macs = f"network/interfaces/macs/{instance.nics[0].mac_address}"
    expected = {
        "instance-id": instance.id,
        "instance-type": "trn1.32xlarge",
        "local-ipv4": "10.0.0.4",
        "local-hostname": "ip-10-0-0-4.us-west-2.compute.internal",
        "mac": instance.nics[0].mac_address,
        "placement/availability-zone": f"{REGION}b",
        "placement/region": REGION,
        "network/interfaces/macs/": f"{instance.nics[0].mac_address}/",
        f"{macs}/vpc-ipv4-cidr-block": "10.0.0.0/16",
        f"{macs}/device-number": "0",
        "iam/security-credentials/": "node-role",
    }
    assert {path: client.value(f"/latest/meta-data/{path}") for path in expected} == expected
    assert client.value("/latest/") == "dynamic/\nmeta-data/\nuser-data"
    assert json.loads(client.value("/latest/meta-data/iam/info"))["InstanceProfileArn"].endswith("/node")
    credentials = json.loads(client.value("/latest/meta-data/iam/security-credentials/node-role"))
    assert (credentials["Code"], credentials["Type"]) == ("Success", "AWS-HMAC")
    document = json.loads(client.value("/latest/dynamic/instance-identity/document"))
    assert (document["instanceId"], document["privateIp"]) == (instance.id, "10.0.0.4")
    token = client.token()
    assert client.ask("/latest/user-data", X_aws_ec2_metadata_token=token) == (200, USER_DATA)
    assert client.ask("/latest/meta-data/placement/group-name", X_aws_ec2_metadata_token=token)[0] == 404


@pytest.mark.parametrize(
    ("name", "kind", "answers"),
    [
        ("q-dy-cr-1.c.pcluster", "A", ["10.0.0.4"]),
        ("Q-DY-cr-1.C.pcluster.", "A", ["10.0.0.4"]),
        ("q-dy-cr-1.c.pcluster", "AAAA", []),
        ("ip-10-0-0-4.us-west-2.compute.internal", "A", ["10.0.0.4"]),
        ("4.0.0.10.in-addr.arpa", "PTR", ["ip-10-0-0-4.us-west-2.compute.internal."]),
        # https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/hosted-zone-private-considerations.html
        ("q-dy-cr-2.c.pcluster", "A", None),
        ("q-dy-cr-1.inner.c.pcluster", "A", None),  # the zone with the longer name has it not
        ("q-dy-cr-1.other.pcluster", "A", None),
        ("ip-10-0-0-5.us-west-2.compute.internal", "A", None),
        ("5.0.0.10.in-addr.arpa", "PTR", None),
        ("aws.amazon.com", "A", None),
    ],
)
def test_names_of_the_vpc_and_no_others(name: str, kind: str, answers: list[str] | None, instance: Any) -> None:
    route53 = route53_backends[ACCOUNT]["aws"]
    zones = {
        "c.pcluster.": (instance.vpc_id, ["q-dy-cr-1", "q-dy-cr-1.inner"]),
        "inner.c.pcluster.": (instance.vpc_id, []),
        "other.pcluster.": ("vpc-0", ["q-dy-cr-1"]),
    }
    for domain, (vpc_id, hosts) in zones.items():
        zone = route53.create_hosted_zone(domain, private_zone=True, vpcid=vpc_id, vpcregion=REGION)
        for host in hosts:
            zone.add_rrset({"Name": f"{host}.{domain}", "Type": "A", "TTL": 120, "ResourceRecords": ["10.0.0.4"]})
    with socket.socket(type=socket.SOCK_DGRAM) as listener, socket.socket(type=socket.SOCK_DGRAM) as asker:
        listener.bind(("127.0.0.1", 0))
        server = names.serve(listener, REGION, instance.vpc_id)
        asker.settimeout(10)
        asker.sendto(b"no query", listener.getsockname())
        asker.sendto(DNSRecord.question(name, kind).pack(), listener.getsockname())
        reply = DNSRecord.parse(asker.recv(512))
        server.shutdown()
    assert RCODE[reply.header.rcode] == ("NXDOMAIN" if answers is None else "NOERROR")
    assert [str(record.rdata) for record in reply.rr] == (answers or [])
    assert all(QTYPE[record.rtype] == kind for record in reply.rr)
