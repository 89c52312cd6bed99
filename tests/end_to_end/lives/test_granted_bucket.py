"""A bucket of another app on live nodes, granted to a cluster that the app imports: by policies of resources alone."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from config.settings import load
from emulator.cdk import CommandLine
from tests.end_to_end.lives.life import Deployed, deployed

pytestmark = [pytest.mark.scenario, pytest.mark.slow, pytest.mark.system, pytest.mark.validation]

NAME, GRANTED, OTHER = "trn1-16", "lab-results", "lab-records"
APP = """\
import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from ultracluster import ParallelCluster

app = cdk.App()
stack = cdk.Stack(app, "lab-buckets", env=cdk.Environment(account="123456789012", region="{region}"))
cluster = ParallelCluster.from_cluster_attributes(stack, "Cluster", cluster_name="{cluster}")
key = kms.Key(stack, "Key")
granted = s3.Bucket(stack, "Granted", bucket_name="{granted}", encryption_key=key)
s3.Bucket(stack, "Other", bucket_name="{other}", encryption_key=key)
"""
GRANT = "granted.grant_read_write(cluster)\n"
TRY = f"""\
try() {{ if said=$("$@" 2>&1); then echo done; else echo "$said" | grep -Eo 'AccessDenied|403' || echo "$said"; fi; }}
echo result >/tmp/result
for bucket in {GRANTED} {OTHER}; do
    try aws s3 cp /tmp/result "s3://$bucket/result"
    try aws s3 cp "s3://$bucket/of-others" -
    try aws s3 ls "s3://$bucket"
done
"""
REFUSED = ["AccessDenied", "403", "AccessDenied"]
"""PutObject, HeadObject, whose answer has no code, and ListObjectsV2."""


def on_compute_node(life: Deployed) -> list[str]:
    """Return what became of writing, reading and listing, first of the granted bucket."""
    said = life.run("exec", NAME, "--", "srun", "--nodes=1", "bash", "-c", TRY)
    print(said)  # all of it, where the last six words are others
    return said.split()[-6:]


def test_nodes_of_an_imported_cluster_use_a_bucket_as_long_as_it_is_granted(tmp_path: Path) -> None:
    app = tmp_path / "lab"
    app.mkdir()
    with deployed(tmp_path) as life, closing(CommandLine(life.aws)) as cdk:
        settings = load(life.file)
        text = APP.format(region=settings.region, cluster=settings.cluster_spec.name, granted=GRANTED, other=OTHER)

        def deploy(grant: str) -> None:
            (app / "app.py").write_text(f"{text}{grant}app.synth()\n", encoding="utf-8")
            printed: list[str] = []
            words = ("--all", "--app", f"{sys.executable} app.py", "--require-approval", "never")
            code = cdk.run("deploy", *words, report=printed.append, directory=app)
            assert code == 0, "\n".join(printed)

        life.run("bootstrap", NAME)
        life.run("deploy", NAME, "--yes")
        deploy(GRANT)
        s3 = life.aws.client("s3", settings.region)
        for bucket in (GRANTED, OTHER):
            stored = s3.put_object(Bucket=bucket, Key="of-others", Body=b"theirs")
            assert stored["ServerSideEncryption"] == "aws:kms"

        assert on_compute_node(life) == ["done", "done", "done", *REFUSED]
        assert s3.get_object(Bucket=GRANTED, Key="result")["Body"].read() == b"result\n"
        cloudformation, functions = (life.aws.client(each, settings.region) for each in ("cloudformation", "lambda"))
        url = f"https://s3.{settings.region}.amazonaws.com/{GRANTED}/result"
        with pytest.raises(ClientError, match="into which nodes write"):
            cloudformation.create_stack(StackName="of-nodes", TemplateURL=url)
        with pytest.raises(ClientError, match="into which nodes write"):
            functions.create_function(
                FunctionName="of-nodes", Runtime="python3.12", Handler="index.handler",
                Role=life.aws.client("iam", settings.region).list_roles()["Roles"][0]["Arn"],
                Code={"S3Bucket": GRANTED, "S3Key": "result"},
            )  # fmt: skip

        deploy(grant="")
        assert on_compute_node(life) == [*REFUSED, *REFUSED]
