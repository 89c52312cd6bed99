"""Import the configurations of ParallelCluster that repositories have, and write a table of what came of each.

``make test-imports REPOSITORIES=FOLDER``, with clones of the repositories in the folder, each a git directory, bare or
not, in a folder of its own. Nothing of them is kept. A configuration counts as taken when its settings load, what they
lead to has all of it, and the schema of the pinned ParallelCluster takes that.

Of each source it tells whether that schema takes it, too, once systems and keys that are gone are replaced, and which
keys have become overrides.

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
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml

from scripts.change.init.changes import NONE, OLD_SYSTEMS
from scripts.change.init.imported import imported
from scripts.change.init.source import Question, SourceError, read
from toolchain.parallelcluster import PYTHON
from ultracluster.domain import parallelcluster_schema
from ultracluster.domain.overrides import at, mappings, without_indices

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
_POLICY: Final = "arn:aws:iam::123456789012:policy/parallelcluster-name"
"""Further questions for policies get further ones: a node has each once."""
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
        configuration: What the settings lead to; None: it is not taken.
        text: The settings.
        source: What the file says, with the answers; None: it could not be read.
        source_refused: Why the schema of the pinned ParallelCluster refuses that; empty: it does not.
        errors: What its validators say of the configuration; None: they were not asked.
        source_errors: What they say of the source.
    """

    repository: str
    commit: str
    path: str
    refused: str
    corrected: Mapping[str, str] = field(default_factory=dict)
    configuration: Mapping[str, Any] | None = None
    text: str = ""
    source: Any = None
    source_refused: str = ""

    @property
    def overrides(self) -> list[str]:
        """The keys that have become overrides."""
        settings = yaml.safe_load(self.text) or {}
        return sorted({without_indices(path) for path in _leaves(at(settings, ("cluster", "overrides")))})


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
    }
    corrected: dict[str, str] = {}
    value: Any = None
    for _ in range(9):
        try:
            source = read(rendered.encode(), path, {**answers, **corrected})
            value = source.value
            result = imported(source, "mine", {**answers, **corrected}, new_network=False)
        except SourceError as error:
            found = dict(_corrections(str(error)))
            if not found.keys() - corrected.keys():
                return Outcome(repository, commit, path, str(error).replace("\n", "; "), corrected, source=value)
            corrected |= found
        else:
            if not result.questions:
                return Outcome(repository, commit, path, "", corrected, result.configuration, result.text, value)
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
    of_place = _of_place(re.sub(r"\[\d+\]", "", question.where))
    name = re.sub("[^a-z0-9]+", "-", question.key.lower())
    return f"{of_place}-{name}" if of_place.startswith(_POLICY) else of_place or name[:25]


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
        ("Policy$", _POLICY),
        ("Role$", "arn:aws:iam::123456789012:role/parallelcluster/name"),
        ("Enabled$|Logs|UseEc2Hostnames", "true"),
        ("LaunchTemplateId$", "lt-0123456789abcdef0"),
    ):
        if re.search(pattern, where):
            return answer
    return ""


def _loaded(found: Sequence[Outcome]) -> Iterator[Outcome]:
    """Yield outcomes with what the schema says of their sources, refused where it refuses what the settings lead to."""
    of_results = _refusals([each.configuration for each in found])
    of_sources = _refusals([_current(each.source) for each in found])
    for each, refused, of_source in zip(found, of_results, of_sources, strict=True):
        judged = replace(each, source_refused=of_source)
        yield replace(judged, refused=f"ParallelCluster: {refused}") if refused else judged


def _current(source: Any) -> Any:
    """Return a source without what the pinned ParallelCluster has no more: old systems, keys of login nodes."""
    if not isinstance(source, dict):
        return source
    current = deepcopy(source)
    if at(current, ("Image", "Os")) in OLD_SYSTEMS:
        current["Image"]["Os"] = _of_place("Image.Os")
    for pool in mappings(at(current, ("LoginNodes", "Pools"))):
        if isinstance(ssh := pool.get("Ssh"), dict):
            ssh.pop("KeyName", None)
    return current


def _refusals(configurations: Sequence[Any]) -> list[str]:
    """Return why ParallelCluster's schema refuses each configuration; empty: it does not, or there is none."""
    said = iter(_answers(_LOAD, [each for each in configurations if each is not None]))
    return ["" if each is None else next(said) or "" for each in configurations]


def _leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not items and path:
        yield path
    for key, each in items:
        yield from _leaves(each, (*path, key))


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
        taken = [each for each in own if not each.refused]
        as_is = sum(not each.corrected for each in taken)
        print(f"\n## {repository} at {own[0].commit}: {len(taken)} of {of_repository}, {as_is} of them as they are\n")
        right = [each for each in own if each.source is not None and not each.source_refused]
        print(f"ParallelCluster's schema takes {len(right)} of the sources: of these {_count(right)} results.")
        overrides = Counter(key for each in taken for key in each.overrides)
        print(f"Keys in overrides: {', '.join(f'{key} ({count})' for key, count in overrides.most_common())}.\n")
        print("| path | outcome |\n|---|---|")
        for each in own:
            print(f"| {each.path} | {_told(each)} |")


def _count(outcomes: Sequence[Outcome]) -> int:
    return sum(not each.refused for each in outcomes)


def _told(outcome: Outcome) -> str:
    """Return what came of a configuration, for a cell of a table."""
    others = ", ".join(f"{key} {value}" for key, value in outcome.corrected.items())
    said = [outcome.refused or (f"taken with {others}" if others else "taken")]
    if outcome.refused and outcome.source_refused:
        said.append(f"ParallelCluster's schema refuses the source: {outcome.source_refused}")
    return "; ".join(said).replace("|", "/").replace("\n", " ")


if __name__ == "__main__":
    main(sys.argv[1])
