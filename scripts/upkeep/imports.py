"""Import the configurations of ParallelCluster that repositories have, and write a table of what came of each.

``make test-imports REPOSITORIES=FOLDER``, with clones of the repositories in the folder, each a git directory, bare or
not, in a folder of its own. Nothing of them is kept. A configuration counts as taken when its settings load, what they
lead to has all of it, and the schema of the pinned ParallelCluster takes that.

What files leave open is answered by samples: ids of the right shape, policies of AWS that the provider may not attach
by ``none``, an old system by the default one, templates of Jinja by what the tests' own fixtures give.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from scripts.change.init.changes import NONE
from scripts.change.init.imported import imported
from scripts.change.init.source import Question, SourceError, read
from toolchain.parallelcluster import PYTHON
from ultracluster.domain import parallelcluster_schema

_SLURM: Final = re.compile(r"^[ {-]*\"?SlurmQueues\"?:", re.MULTILINE)
_TEMPLATE: Final = re.compile(r"\{%|\{\{ *[A-Za-z_]\w* *[}|(.]")
_REGION: Final = "us-east-1"
_ZONE: Final = "use1-az4"
_LOAD: Final = """
import json, os, sys
os.environ["AWS_DEFAULT_REGION"] = "us-east-1"
from pcluster.schemas.cluster_schema import ClusterSchema
for line in sys.stdin:
    try:
        ClusterSchema("cluster").load(json.loads(line))
        print("null")
    except Exception as error:
        print(json.dumps(f"{type(error).__name__}: {error}"))
"""
_JINJA: Final = """
import json, sys
from jinja2 import ChainableUndefined, Environment

class Named(ChainableUndefined):
    def __str__(self):
        return "${" + str(self._undefined_name) + "}"
    def __getitem__(self, key):
        return Environment(undefined=Named).undefined(name=f"{self._undefined_name}.{key}")
    __getattr__ = lambda self, key: self[key] if not key.startswith("_") else object.__getattribute__(self, key)
    def __iter__(self):
        return iter([self[0]])
    def __len__(self):
        return 1
    def __index__(self):
        return 2
    def __bool__(self):
        return False
    def split(self, *_):
        return [self[0], self[1]]
    def __add__(self, other):
        return str(self) + str(other)

for line in sys.stdin:
    try:
        template = Environment(undefined=Named, extensions=["jinja2.ext.do"]).from_string(json.loads(line))
        print(json.dumps(template.render()))
    except Exception as error:
        print(json.dumps([f"{type(error).__name__}: {error}"]))
"""
_SAMPLES: Final[Sequence[tuple[str, str]]] = (
    ("^network.cidr$", "10.0.0.0/16"),
    ("^network.public_subnet_cidr$", "10.0.0.0/18"),
    ("^network.private_subnet_cidr$", "10.0.128.0/17"),
    ("^network.existing.vpc_id$", "vpc-0123456789abcdef0"),
    ("network.existing.public_subnet_id", "subnet-0fedcba9876543210"),
    ("^INSTANCE$", "trn1.32xlarge"),
    ("instance(_type)?$", "c5n.18xlarge"),
    ("cluster.os", "alinux2023"),
)


@dataclass(frozen=True)
class Outcome:
    """What came of a configuration.

    Attributes:
        repository: Where it is.
        commit: Which version of that.
        path: Its file there.
        refused: Why it is not taken; empty: it is.
        corrected: Other values than those of the file, where ParallelCluster's own validators refuse these, too.
    """

    repository: str
    commit: str
    path: str
    refused: str
    corrected: Mapping[str, str] = field(default_factory=dict)
    configuration: Mapping[str, Any] | None = None


def outcomes(folder: Path) -> list[Outcome]:
    """Return what comes of the configurations of all repositories in a folder."""
    found: list[Outcome] = []
    for repository in sorted({path.parent for path in folder.glob("*/*/HEAD") if (path.parent / "objects").is_dir()}):
        name = str(repository.relative_to(folder)).partition("/")[0].replace("+", "/")
        commit = _git(repository, "rev-parse", "HEAD").strip()
        paths = _git(repository, "ls-tree", "-r", "--name-only", "HEAD").splitlines()
        texts = {path: _git(repository, "show", f"HEAD:{path}") for path in paths if path.endswith((".yaml", ".yml"))}
        texts = {path: text for path, text in texts.items() if _SLURM.search(text)}
        templates = [path for path, text in texts.items() if _TEMPLATE.search(text)]
        rendered = dict(zip(templates, _answers(_JINJA, [texts[path] for path in templates]), strict=True))
        found += [_outcome(name, commit, path, rendered.get(path, text)) for path, text in texts.items()]
    return [*_loaded(found)]


def _outcome(repository: str, commit: str, path: str, rendered: Any) -> Outcome:
    if isinstance(rendered, list):
        return Outcome(repository, commit, path, f"Jinja: {rendered[0]}")
    answers = {
        "region": _REGION,
        "zone_id": _ZONE,
        "AWS::Region": _REGION,
        "AWS::StackName": "mine",
        "Architecture": "x86",
    }
    corrected: dict[str, str] = {}
    for _ in range(9):
        try:
            source = read(rendered.encode(), path, {**answers, **corrected})
            result = imported(source, "mine", {**answers, **corrected}, new_network=False)
        except SourceError as error:
            found = dict(_corrections(str(error)))
            if not found.keys() - corrected.keys():
                return Outcome(repository, commit, path, str(error).replace("\n", "; "), corrected)
            corrected |= found
        else:
            if not result.questions:
                return Outcome(repository, commit, path, "", corrected, result.configuration)
            answers |= {question.key: _sample(question) for question in result.questions}
    return Outcome(repository, commit, path, f"questions without end: {result.questions[0]}")


def _corrections(error: str) -> Iterator[tuple[str, str]]:
    """Yield other values for what ParallelCluster's validators of names and of the head node's memory refuse."""
    for key, got, reason in re.findall(r":\d+: ([\w.[\]]+): got '?([^';]*)'?; (.*)", error):
        if "becomes part of node names" in reason:
            yield key, re.sub("[^a-z0-9]+", "-", got.lower())[:25]
        elif "of memory" in reason or "an EC2 instance type" in reason:
            yield key, "m5.8xlarge"


def _sample(question: Question) -> str:
    """Return an answer of the shape that is needed."""
    if question.or_none:
        return NONE
    for pattern, answer in _SAMPLES:
        if re.search(pattern, question.key):
            return answer
    return _of_place(re.sub(r"\[\d+\]", "", question.where)) or re.sub("[^a-z0-9]+", "-", question.key.lower())[:25]


def _of_place(where: str) -> str:
    """Return a sample of what the schema has at a place; templates of tests use one for most of them."""
    field = parallelcluster_schema.fields().get(where)
    if field is not None and field.kind != "text":
        return {
            "boolean": "true",
            "integer": str(max(int(field.least or 0), min(10, int(field.most or 10)))),
            "number": "1",
        }.get(field.kind, "")
    if field is not None and field.choices:
        return "alinux2023" if where == "Image.Os" else str(field.choices[0])
    for pattern, answer in (
        ("SubnetIds?$", "subnet-0123456789abcdef0"),
        ("SecurityGroups?$|SecurityGroupIds$", "sg-0123456789abcdef0"),
        ("KeyName$", "key"),
        ("DatabaseName$", "database"),
        ("DomainAddr$", "ldaps://corp.example.com"),
        ("InstanceType$|Instances$", "c5n.18xlarge"),
        ("FileCacheId$", "fc-0123456789abcdef0"),
        ("EfsSettings.AccessPointId$", "fsap-0123456789abcdef0"),
        ("FileSystemId$", "fs-0123456789abcdef0"),
        ("FsxOpenZfsSettings.VolumeId$|FsxOntapSettings.VolumeId", "fsvol-0123456789abcdef0"),
        ("VolumeId$", "vol-0123456789abcdef0"),
        ("Count$|Size$|Idletime$|Timeout$|Port$|Iops$|Memory$|Capacity$", "100"),
        ("SecretArn$", "arn:aws:secretsmanager:us-east-1:123456789012:secret:name-AbCdEf"),
        ("Os$", "ubuntu2404"),
        ("CustomAmi$", "ami-0123456789abcdef0"),
        ("CapacityReservationId$", "cr-0123456789abcdef0"),
        ("GroupArn$", "arn:aws:resource-groups:us-east-1:123456789012:group/name"),
        ("AllowedIps$", "203.0.113.0/24"),
        ("Policy$", "arn:aws:iam::123456789012:policy/parallelcluster-name"),
        ("Role$", "arn:aws:iam::123456789012:role/parallelcluster/name"),
        ("Enabled$|Logs|UseEc2Hostnames", "true"),
        ("LaunchTemplateId$", "lt-0123456789abcdef0"),
    ):
        if re.search(pattern, where):
            return answer
    return ""


def _loaded(found: Sequence[Outcome]) -> Iterator[Outcome]:
    """Yield outcomes, refused where ParallelCluster's schema refuses what the settings lead to."""
    taken = [each for each in found if each.configuration is not None]
    said = dict(zip(map(id, taken), _answers(_LOAD, [each.configuration for each in taken]), strict=True))
    for each in found:
        refused = said.get(id(each))
        yield replace(each, refused=f"ParallelCluster: {refused}") if refused else each


def _answers(program: str, values: Sequence[Any]) -> list[Any]:
    """Return what a program of ParallelCluster's environment says of each value."""
    lines = "".join(f"{json.dumps(value)}\n" for value in values)
    done = subprocess.run([PYTHON, "-c", program], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _git(repository: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "--git-dir", repository, *arguments], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


def main(folder: str) -> None:
    """Print the tables."""
    found = outcomes(Path(folder))
    for repository, of_repository in sorted(Counter(each.repository for each in found).items()):
        own = [each for each in found if each.repository == repository]
        taken = sum(not each.refused for each in own)
        as_is = sum(not each.refused and not each.corrected for each in own)
        print(f"\n## {repository} at {own[0].commit}: {taken} of {of_repository}, {as_is} of them as they are\n")
        print("| path | outcome |\n|---|---|")
        for each in own:
            others = ", ".join(f"{key} {value}" for key, value in each.corrected.items())
            said = each.refused.replace("|", "/") or (f"taken with {others}" if others else "taken")
            print(f"| {each.path} | {said} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
