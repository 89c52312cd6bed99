"""What ParallelCluster's own dry run must come to."""

from __future__ import annotations

from functools import partial

import pytest

from scripts.preflight.check import Status
from scripts.preflight.cluster import parallelcluster
from tests.scripts.preflight.cases import Case
from tests.scripts.preflight.conftest import GoodAccount
from tests.scripts.preflight.deployed import deployed


def closed_file_system(account: GoodAccount) -> None:
    """Deploy network and storage, and let nobody reach the file system."""
    deployed()(account)
    ec2 = account.client("ec2")
    described = ec2.describe_security_groups(Filters=[{"Name": "ip-permission.to-port", "Values": ["988"]}])
    [group] = described["SecurityGroups"]
    ec2.revoke_security_group_ingress(GroupId=group["GroupId"], IpPermissions=group["IpPermissions"])


def without_images(account: GoodAccount) -> None:
    """Deploy network and storage, and take the official images away."""
    deployed()(account)
    ec2 = account.client("ec2")
    for image in ec2.describe_images(Owners=["amazon"])["Images"]:
        ec2.deregister_image(ImageId=image["ImageId"])


_case = partial(Case, parallelcluster, marks=(pytest.mark.validation,))

CASES = (
    _case(Status.SKIP, ("do not exist yet", "make validate ENV=trn1-16", "make deploy ENV=trn1-16"), name="too-early"),
    _case(Status.PASS, ("brings: node scripts, placement groups, policies",), deployed()),
    _case(Status.PASS, spoil=deployed("reserved"), environment="reserved", name="reserved"),
    _case(
        Status.FAIL,
        ("current security group settings on file storage", "make validate"),
        closed_file_system,
        name="closed-file-system",
    ),
    _case(Status.FAIL, ("official ParallelCluster AMI",), without_images, name="no-images"),
)
