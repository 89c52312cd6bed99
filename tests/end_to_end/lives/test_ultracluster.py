"""The life of a cluster with 1,875 nodes in Slurm, and with a bootstrap stack of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.aws import ACCOUNT
from emulator.machines import image
from scripts.core import options
from scripts.rehearse.rehearsal import Rehearsal
from tests.command_line import ultracluster
from tests.end_to_end.checks import Deployed, check_deployment
from tests.end_to_end.lives.life import END, assert_in_order, edited
from tests.stacks.deployments import Raw

KEY = f"arn:aws:kms:us-west-2:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
IN_ORDER = (
    r"bootstrapped\.",
    r"✅  ultracluster-cluster",
    r"ultracluster-trn1-trn1-32xl\W+trn1\.32xlarge\W+1 interface, 8",
    # off; then two stop after their job, because the update drains them, and the others are off or on their way there
    r" trn1 +- +- +1,875 +- ",
    r"UPDATE_COMPLETE +Custom::PclusterCluster",
    r" trn1 +- +- +\S+ +- +[\d,]+ +- +- +1 ",
    r"EC2 terminates i-",
    r"FAIL +cluster ultracluster: HeadNode.InstanceType from \S+ to \S+ is refused",
    r"\$ ./ultracluster jobs list ultracluster\n  1 running.*? RUNNING +2 ",
    *END,
    r"2 x trn1\.32xlarge: \$43\.\d\d an hour",
    r"All in \d+ s\.",
)


@pytest.mark.scenario
@pytest.mark.slow
@pytest.mark.system
@pytest.mark.validation
def test_an_ultracluster(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """AWS's APIs are asked what was deployed; everything that the CDK stores has the key of the settings."""

    def bootstrap(raw: Raw) -> None:
        raw["bootstrap"] = {"qualifier": "ml-team", "kms_key_arn": KEY}

    edited(tmp_path, "ultracluster", bootstrap)
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    monkeypatch.setattr(options, "BUILD", tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    show = Rehearsal.show

    def check(running: Rehearsal) -> None:
        show(running)
        check_deployment(Deployed(running.aws, running.settings))
        cloudformation, s3 = (running.aws.client(service, "us-west-2") for service in ("cloudformation", "s3"))
        stacks = {each["StackName"] for each in cloudformation.describe_stacks()["Stacks"]}
        assert stacks >= {"CDKToolkit-ml-team", "ultracluster-network"}
        bucket = f"cdk-ml-team-assets-{ACCOUNT}-us-west-2"
        objects = (
            s3.head_object(Bucket=bucket, Key=each["Key"]) for each in s3.list_objects_v2(Bucket=bucket)["Contents"]
        )
        assert {each["SSEKMSKeyId"].rpartition("/")[2] for each in objects} == {KEY.rpartition("/")[2]}

    monkeypatch.setattr(Rehearsal, "show", check)
    image.prepare()
    code = ultracluster("rehearse", "ultracluster")
    said = "".join(capfd.readouterr())
    assert code == 0, said
    assert_in_order(IN_ORDER, said)
    assert "ultracluster-network | " in (tmp_path / "rehearsal-ultracluster.log").read_text(encoding="utf-8")
