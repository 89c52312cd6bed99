"""The versions of this project, and of what it pins and runs."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterator

from pydantic import Field

from scripts.core.document import Result
from scripts.core.options import ROOT
from scripts.core.report import Block, Facts


class Versions(Result):
    """What ``version --output json`` prints."""

    ultracluster: str = Field(description="This project.")
    cdk: str = Field(description="The CDK's command line.", serialization_alias="aws-cdk (command line)")
    cdk_library: str = Field(description="The CDK's library.", serialization_alias="aws-cdk-lib")
    parallelcluster: str = Field(description="AWS ParallelCluster.", serialization_alias="aws-parallelcluster")
    boto3: str = Field(description="AWS's SDK for Python.")
    python: str = Field(description="Python that runs this.", serialization_alias="Python")

    def blocks(self) -> Iterator[Block]:
        """Yield it for people."""
        yield Facts(list(self.model_dump(by_alias=True).items()))


def versions() -> Versions:
    """Return the versions, from the files that pin them."""
    project = (ROOT / "constructs" / "pyproject.toml").read_text(encoding="utf-8")
    pins = "".join(
        (ROOT / name).read_text(encoding="utf-8") for name in ("requirements.txt", "requirements-pcluster.txt")
    )
    node = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))
    packages = dict(re.findall(r"^([A-Za-z0-9_.-]+)(?:\[[^]]*\])?==(\S+)$", pins, re.MULTILINE))
    return Versions(
        ultracluster=re.findall(r'^version = "(.*)"$', project, re.MULTILINE)[0],
        cdk=(node.get("dependencies", {}) | node.get("devDependencies", {}))["aws-cdk"],
        cdk_library=packages["aws-cdk-lib"],
        parallelcluster=packages["aws-parallelcluster"],
        boto3=packages["boto3"],
        python=platform.python_version(),
    )
