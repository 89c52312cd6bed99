"""Rules of FSx for Lustre, and the name under which ParallelCluster mounts a file system."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.constructs.domain.specs import changed
from ultracluster.domain.lustre import (
    DataRepository,
    LustreSpec,
    growth_blocker,
    included_metadata_iops,
    repository_violations,
    shared_storage_name,
    violations,
)

PERSISTENT_2 = LustreSpec()
PERSISTENT_1 = changed(PERSISTENT_2, deployment_type="PERSISTENT_1", throughput_mbps_per_tib=100)
SCRATCH_2 = changed(PERSISTENT_2, deployment_type="SCRATCH_2", throughput_mbps_per_tib=None, backup_retention_days=0)
KEY = "arn:aws:kms:us-west-2:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
LINKED = changed(PERSISTENT_2, backup_retention_days=0)
DATA = DataRepository(path="/data", bucket="corpus")
OTHER = DataRepository(path="/other", bucket="other", prefix="runs")

ALLOWED = [
    *[changed(spec, capacity_gib=gib) for spec in (PERSISTENT_2, PERSISTENT_1, SCRATCH_2) for gib in (1200, 240_000)],
    *[changed(PERSISTENT_2, mount_dir=each) for each in ("/mnt/fsx", "/opt/data", "/scratch-2", "/homes")],
    changed(PERSISTENT_2, kms_key_arn=KEY),
]
VIOLATIONS: list[tuple[LustreSpec, str, Any, str]] = [
    (PERSISTENT_2, "capacity_gib", 0, "1200, 2400 or a multiple of 2400"),
    (PERSISTENT_2, "throughput_mbps_per_tib", None, "125, 250, 500 or 1000"),
    (PERSISTENT_1, "throughput_mbps_per_tib", 250, "50, 100 or 200"),
    (SCRATCH_2, "throughput_mbps_per_tib", 200, "null"),
    (PERSISTENT_2, "metadata_iops", 9000, "null (automatic), 1500, 3000, 6000, 12000"),
    (PERSISTENT_2, "metadata_iops", 204_000, "a multiple of 12000 up to 192000"),
    (PERSISTENT_1, "metadata_iops", 1500, "null with PERSISTENT_1"),
    (SCRATCH_2, "backup_retention_days", 7, "0 with SCRATCH_2"),
    (SCRATCH_2, "kms_key_arn", KEY, "null with SCRATCH_2"),
    *[
        (PERSISTENT_2, "mount_dir", each, "an absolute path such as /fsx")
        for each in ("fsx", "/", "/fsx/../etc", "/my data")
    ],
    (PERSISTENT_2, "mount_dir", "/opt/slurm", "another directory"),
    (PERSISTENT_2, "mount_dir", "/home/fsx", "outside /home"),
    (PERSISTENT_2, "mount_dir", "/scratch/fsx", "outside /scratch"),
]


@pytest.mark.parametrize("spec", ALLOWED, ids=range(len(ALLOWED)))
def test_allowed(spec: LustreSpec) -> None:
    assert violations(spec) == []


@pytest.mark.parametrize(("spec", "field", "value", "allowed"), VIOLATIONS, ids=range(len(VIOLATIONS)))
def test_violations(spec: LustreSpec, field: str, value: Any, allowed: str) -> None:
    [violation] = violations(changed(spec, **{field: value}))
    assert (violation.path, violation.got) == ((field,), value)
    assert allowed in violation.allowed


@pytest.mark.parametrize(
    ("gib", "iops"),
    [
        (1200, 1500),
        (2400, 3000),
        (9600, 6000),
        (12_000, 12_000),
        (45_600, 12_000),
        (69_600, 24_000),
        (960_000, 192_000),
    ],
)
def test_metadata_iops_fit_the_capacity(gib: int, iops: int) -> None:
    # https://docs.aws.amazon.com/fsx/latest/LustreGuide/performance.html#dne-metadata-performance
    assert included_metadata_iops(gib) == iops
    assert violations(changed(PERSISTENT_2, capacity_gib=gib, metadata_iops=iops)) == []
    fewer = {12_000: 6000, 6000: 3000, 3000: 1500}.get(iops, iops - 12_000)
    if fewer > 0:
        [violation] = violations(changed(PERSISTENT_2, capacity_gib=gib, metadata_iops=fewer))
        assert violation.allowed == f"null (automatic), or at least {iops}"


@pytest.mark.parametrize(
    ("capacity", "iops", "blocker"),
    [
        ((1200, 2400), (1500, 3000), "2400 GiB need 3000 metadata IOPS first, and the file system has 1500"),
        ((4800, 12_000), (None, 12_000), "12000 GiB need 12000 metadata IOPS first, and the file system has 6000"),
        ((4800, 9600), (6000, 12_000), None),
        ((4800, 12_000), (None, None), None),
        ((4800, 4800), (6000, 12_000), None),
    ],
)
def test_metadata_iops_grow_before_the_capacity(
    capacity: tuple[int, int], iops: tuple[int | None, int | None], blocker: str | None
) -> None:
    # https://github.com/hashicorp/terraform-provider-aws/issues/44432
    assert growth_blocker(capacity, iops) == blocker


ALLOWED_LINKS = [
    [],
    [changed(DATA, path="/")],
    [changed(DATA, prefix="a"), changed(DATA, path="/out", prefix="ab/")],
    [changed(DATA, bucket=None, prefix="in"), changed(DATA, bucket=None, path="/out", prefix="out")],
    [changed(DATA, import_events=[], export_events=[])],
    [changed(DATA, path=f"/{n}", bucket=f"corpus-{n}") for n in range(8)],
]
LINK_VIOLATIONS: list[tuple[dict[str, Any], str]] = [
    ({"path": "/data/"}, "/ or an absolute path such as /data"),
    *[
        ({"bucket": bucket}, "general purpose bucket: 3 to 63")
        for bucket in ("Corpus", "ab", "192.168.5.4", "a..b", "xn--corpus", "corpus--x-s3")
    ],
    *[({"prefix": prefix}, "without leading or doubled slashes") for prefix in ("/runs", "runs//2026")],
    ({"import_events": ["NEW", "NEW"]}, "each once"),
    *[({"path": path}, "neither above nor below /other") for path in ("/other", "/other/in", "/")],
    *[
        ({"prefix": prefix, "bucket": "other"}, "a prefix neither above nor below 'runs' of the same bucket")
        for prefix in ("", "runs/", "runs/2026")
    ],
]


@pytest.mark.parametrize("links", ALLOWED_LINKS, ids=range(len(ALLOWED_LINKS)))
def test_allowed_links(links: list[DataRepository]) -> None:
    assert repository_violations(LINKED, links) == []


@pytest.mark.parametrize(("values", "allowed"), LINK_VIOLATIONS, ids=range(len(LINK_VIOLATIONS)))
def test_violations_of_links(values: dict[str, Any], allowed: str) -> None:
    [violation] = repository_violations(LINKED, [OTHER, changed(DATA, **values)])
    assert violation.path == ("data_repositories", 1, next(iter(values)))
    assert allowed in violation.allowed


def test_links_are_at_most_eight_and_exclude_backups() -> None:
    [many] = repository_violations(LINKED, [changed(DATA, path=f"/{n}", bucket=f"corpus-{n}") for n in range(9)])
    [backups] = repository_violations(PERSISTENT_2, [DATA])
    assert (many.path, many.got, many.allowed) == (("data_repositories",), 9, "at most 8")
    assert (backups.path, backups.got) == (("file_system", "backup_retention_days"), 7)


SUBNET = ("10.0.0.0/16", "10.0.64.0/18", "usw2-az4")


def name_of(spec: LustreSpec = PERSISTENT_2, stack_name: str = "trn1-storage", subnet: tuple[str, ...] = SUBNET) -> str:
    return shared_storage_name(spec, stack_name=stack_name, subnet=subnet)


def test_what_means_a_new_file_system_or_mount_changes_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {
        "deployment_type": "PERSISTENT_1",
        "kms_key_arn": KEY,
        "throughput_mbps_per_tib": 500,
        "mount_dir": "/lustre",
    }
    names = [name_of(), name_of(stack_name="trn1-other-storage")]
    names += [name_of(changed(PERSISTENT_2, **{field: value})) for field, value in values.items()]
    names += [name_of(subnet=(*SUBNET[:2], "usw2-az1"))]
    for constant in ("VERSION", "SECURITY_GROUP_DESCRIPTION"):
        with monkeypatch.context() as patch:
            patch.setattr(f"ultracluster.domain.lustre.{constant}", "another")
            names.append(name_of())
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"fsx-[0-9a-f]{12}", name) for name in names), "ParallelCluster takes 30 characters"


def test_what_changes_in_place_leaves_the_name() -> None:
    in_place = {"capacity_gib": 9600, "compression": "NONE", "metadata_iops": 12_000, "backup_retention_days": 0}
    assert name_of(changed(PERSISTENT_2, **in_place)) == name_of()
