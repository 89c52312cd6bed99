import re
from typing import Any

import pytest

from tests.constructs.domain.specs import changed
from ultracluster.domain.lustre import (
    DataRepository,
    LustreSpec,
    growth_blocker,
    included_metadata_iops,
    overlap,
    repository_violations,
    shared_storage_name,
    violations,
)

PERSISTENT_2 = LustreSpec()
PERSISTENT_1 = changed(PERSISTENT_2, deployment_type="PERSISTENT_1", throughput_mbps_per_tib=100)
SCRATCH_2 = changed(PERSISTENT_2, deployment_type="SCRATCH_2", throughput_mbps_per_tib=None, backup_retention_days=0)
KEY = "arn:aws:kms:us-west-2:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"

DATA = DataRepository(path="/data", bucket="corpus")
LINKED = changed(PERSISTENT_2, backup_retention_days=0)


def test_sound_file_systems_are_accepted() -> None:
    for spec in (PERSISTENT_2, PERSISTENT_1, SCRATCH_2):
        for capacity in (1200, 2400, 4800, 2400 * 100):
            assert violations(changed(spec, capacity_gib=capacity)) == []
        for mount_dir in ("/fsx", "/mnt/fsx", "/opt/data", "/scratch-2", "/homes"):
            assert violations(changed(spec, mount_dir=mount_dir)) == []


def test_throughputs_of_each_type_are_accepted() -> None:
    for spec, values in ((PERSISTENT_1, (50, 100, 200)), (PERSISTENT_2, (125, 250, 500, 1000))):
        for value in values:
            assert violations(changed(spec, throughput_mbps_per_tib=value)) == []


def test_metadata_iops_of_persistent_2_are_accepted() -> None:
    for iops in (6000, 12_000, 24_000, 192_000):
        assert violations(changed(PERSISTENT_2, metadata_iops=iops)) == []


@pytest.mark.parametrize(
    ("gib", "iops"),
    [
        *((1200, 1500), (2400, 3000), (4800, 6000), (9600, 6000), (12_000, 12_000), (45_600, 12_000)),
        *((48_000, 24_000), (69_600, 24_000), (72_000, 36_000), (960_000, 192_000)),
    ],
)
def test_metadata_iops_fit_the_capacity(gib: int, iops: int) -> None:
    # https://docs.aws.amazon.com/fsx/latest/LustreGuide/performance.html#dne-metadata-performance
    assert included_metadata_iops(gib) == iops
    assert violations(changed(PERSISTENT_2, capacity_gib=gib, metadata_iops=iops)) == []
    fewer = {12_000: 6000, 6000: 3000, 3000: 1500}.get(iops, iops - 12_000)
    if fewer > 0:
        [violation] = violations(changed(PERSISTENT_2, capacity_gib=gib, metadata_iops=fewer))
        assert (violation.path, violation.got) == (("metadata_iops",), fewer)
        assert violation.allowed == f"null (automatic), or at least {iops}"


@pytest.mark.parametrize(
    ("capacity", "iops", "fault"),
    [
        ((1200, 2400), (1500, 3000), "2400 GiB need 3000 metadata IOPS first, and the file system has 1500"),
        ((4800, 12_000), (None, 12_000), "12000 GiB need 12000 metadata IOPS first, and the file system has 6000"),
        ((4800, 12_000), (6000, None), "12000 GiB need 12000 metadata IOPS first, and the file system has 6000"),
        ((4800, 9600), (6000, 12_000), None),
        ((4800, 12_000), (12_000, 24_000), None),
        ((4800, 12_000), (None, None), None),
        ((4800, 4800), (6000, 12_000), None),
    ],
)
def test_metadata_iops_grow_before_the_capacity(
    capacity: tuple[int, int], iops: tuple[int | None, int | None], fault: str | None
) -> None:
    # https://github.com/hashicorp/terraform-provider-aws/issues/44432
    assert growth_blocker(capacity, iops) == fault


def test_a_key_is_accepted() -> None:
    assert violations(changed(PERSISTENT_2, kms_key_arn=KEY)) == []


BROKEN: list[tuple[LustreSpec, dict[str, Any], str]] = [
    (PERSISTENT_2, {"capacity_gib": 0}, "1200, 2400 or a multiple of 2400"),
    (PERSISTENT_2, {"capacity_gib": -2400}, "1200, 2400 or a multiple of 2400"),
    (PERSISTENT_2, {"capacity_gib": 3600}, "1200, 2400 or a multiple of 2400"),
    (SCRATCH_2, {"capacity_gib": 6000}, "1200, 2400 or a multiple of 2400"),
    (PERSISTENT_2, {"throughput_mbps_per_tib": 100}, "125, 250, 500 or 1000"),
    (PERSISTENT_2, {"throughput_mbps_per_tib": None}, "125, 250, 500 or 1000"),
    (PERSISTENT_1, {"throughput_mbps_per_tib": 250}, "50, 100 or 200"),
    (SCRATCH_2, {"throughput_mbps_per_tib": 200}, "null"),
    (PERSISTENT_2, {"metadata_iops": 9000}, "null (automatic), 1500, 3000, 6000, 12000"),
    (PERSISTENT_2, {"metadata_iops": 204_000}, "a multiple of 12000 up to 192000"),
    (PERSISTENT_1, {"metadata_iops": 1500}, "null with PERSISTENT_1"),
    (SCRATCH_2, {"metadata_iops": 1500}, "null with SCRATCH_2"),
    (SCRATCH_2, {"backup_retention_days": 7}, "0 with SCRATCH_2"),
    (SCRATCH_2, {"kms_key_arn": KEY}, "null with SCRATCH_2"),
    (PERSISTENT_2, {"kms_key_arn": "alias/lustre"}, "arn:aws:kms:REGION:ACCOUNT:key/ID"),
    (PERSISTENT_2, {"mount_dir": "fsx"}, "an absolute path such as /fsx"),
    (PERSISTENT_2, {"mount_dir": "/"}, "an absolute path such as /fsx"),
    (PERSISTENT_2, {"mount_dir": "/fsx/"}, "an absolute path such as /fsx"),
    (PERSISTENT_2, {"mount_dir": "/fsx/../etc"}, "an absolute path such as /fsx"),
    (PERSISTENT_2, {"mount_dir": "/my data"}, "an absolute path such as /fsx"),
    (PERSISTENT_2, {"mount_dir": "/opt"}, "another directory"),
    (PERSISTENT_2, {"mount_dir": "/opt/slurm"}, "another directory"),
    (PERSISTENT_2, {"mount_dir": "/tmp"}, "another directory"),  # noqa: S108
    (PERSISTENT_2, {"mount_dir": "/home"}, "outside /home"),
    (PERSISTENT_2, {"mount_dir": "/home/fsx"}, "outside /home"),
    (PERSISTENT_2, {"mount_dir": "/scratch"}, "outside /scratch"),
    (PERSISTENT_2, {"mount_dir": "/scratch/fsx"}, "outside /scratch"),
]


def test_each_broken_rule_is_named_once() -> None:
    for spec, change, allowed in BROKEN:
        found = violations(changed(spec, **change))

        assert [(violation.path, violation.got) for violation in found] == [
            ((field,), got) for field, got in change.items()
        ]
        assert allowed in found[0].allowed


def test_all_faults_are_reported_at_once() -> None:
    broken = changed(SCRATCH_2, capacity_gib=1000, kms_key_arn=KEY, mount_dir="/usr")

    assert {violation.path for violation in violations(broken)} == {("capacity_gib",), ("kms_key_arn",), ("mount_dir",)}


def test_sound_links_to_s3_are_accepted() -> None:
    sound = [
        [],
        [changed(DATA, path="/")],
        [DATA, changed(DATA, path="/data-2", bucket="corpus-2")],
        [changed(DATA, prefix="a"), changed(DATA, path="/out", prefix="ab/")],
        [changed(DATA, bucket=None, prefix="in"), changed(DATA, bucket=None, path="/out", prefix="out")],
        [changed(DATA, import_events=[], export_events=[])],
        [changed(DATA, path=f"/{n}", bucket=f"corpus-{n}") for n in range(8)],
    ]
    for repositories in sound:
        assert repository_violations(LINKED, repositories) == []


BROKEN_LINKS: list[tuple[str, Any, str]] = [
    ("path", "data", "/ or an absolute path such as /data"),
    ("path", "/data/", "/ or an absolute path such as /data"),
    ("bucket", "Corpus", "3 to 63"),
    ("bucket", "ab", "3 to 63"),
    ("bucket", "a" * 64, "3 to 63"),
    ("bucket", "192.168.5.4", "3 to 63"),
    ("bucket", "a..b", "3 to 63"),
    ("bucket", "-corpus", "3 to 63"),
    ("bucket", "xn--corpus", "3 to 63"),
    ("bucket", "corpus--x-s3", "general purpose"),
    ("bucket", "s3://corpus", "3 to 63"),
    ("prefix", "/runs", "without leading or doubled slashes"),
    ("prefix", "runs//2026", "without leading or doubled slashes"),
    ("import_events", ["NEW", "NEW"], "each once"),
]


def test_each_broken_rule_of_a_link_is_named_once() -> None:
    other = changed(DATA, path="/other", bucket="other")
    for field, value, allowed in BROKEN_LINKS:
        found = repository_violations(LINKED, [other, changed(DATA, **{field: value})])

        assert [violation.path for violation in found] == [("data_repositories", 1, field)], value
        assert allowed in found[0].allowed


def test_a_directory_is_linked_once() -> None:
    for path in ("/data", "/data/in", "/"):
        [violation] = repository_violations(LINKED, [DATA, changed(DATA, path=path, bucket="other")])

        assert (violation.path, violation.got) == (("data_repositories", 1, "path"), path)
        assert "/data" in violation.allowed


def test_a_prefix_is_linked_once() -> None:
    for first, second in (("", ""), ("", "runs"), ("runs", "runs/"), ("runs/2026", "runs")):
        for bucket in ("corpus", None):
            one = changed(DATA, bucket=bucket, prefix=first)
            found = repository_violations(LINKED, [one, changed(one, prefix=second, path="/other")])

            assert [(violation.path, violation.got) for violation in found] == [
                (("data_repositories", 1, "prefix"), second)
            ]


def test_there_are_at_most_eight_links() -> None:
    [violation] = repository_violations(LINKED, [changed(DATA, path=f"/{n}", bucket=f"corpus-{n}") for n in range(9)])

    assert violation.path == ("data_repositories",)
    assert (violation.got, violation.allowed) == (9, "at most 8")


def test_a_file_system_without_links_may_have_backups() -> None:
    assert repository_violations(PERSISTENT_2, []) == []


def test_a_linked_file_system_has_no_backups() -> None:
    [violation] = repository_violations(PERSISTENT_2, [DATA])

    assert violation.path == ("file_system", "backup_retention_days")
    assert violation.got == 7


def test_overlap_is_by_whole_names() -> None:
    expected = {
        ("/fsx", "/fsx"): True,
        ("/fsx", "/fsx/data"): True,
        ("/fsx/data", "/fsx"): True,
        ("/", "/fsx"): True,
        ("/fsx/", "/fsx"): True,
        ("/fsx", "/fsx2"): False,
        ("/fsx/a", "/fsx/b"): False,
    }
    assert {pair: overlap(*pair) for pair in expected} == expected


SUBNET = ("10.0.0.0/16", "10.0.64.0/18", "usw2-az4")


def name_of(spec: LustreSpec = PERSISTENT_2, stack_name: str = "trn1-storage", subnet: tuple[str, ...] = SUBNET) -> str:
    return shared_storage_name(spec, stack_name=stack_name, subnet=subnet)


def test_the_shared_storage_name_is_one_that_parallelcluster_takes() -> None:
    assert re.fullmatch(r"fsx-[0-9a-f]{12}", name_of())


def test_what_makes_a_new_file_system_or_mount_changes_the_name() -> None:
    changes: list[dict[str, Any]] = [
        {"deployment_type": "PERSISTENT_1"},
        {"kms_key_arn": KEY},
        {"throughput_mbps_per_tib": 500},
        {"mount_dir": "/lustre"},
    ]
    for change in changes:
        assert name_of(changed(PERSISTENT_2, **change)) != name_of(), change


def test_another_subnet_changes_the_name() -> None:
    others = [
        ("10.1.0.0/16", "10.0.64.0/18", "usw2-az4"),
        ("10.0.0.0/16", "10.0.128.0/18", "usw2-az4"),
        ("10.0.0.0/16", "10.0.64.0/18", "usw2-az3"),
        ("vpc-0123456789abcdef0", "subnet-0123456789abcdef0"),
    ]
    for subnet in others:
        assert name_of(subnet=subnet) != name_of(), subnet


def test_another_stack_changes_the_name() -> None:
    assert name_of(stack_name="trn1-other-storage") != name_of()


@pytest.mark.parametrize("constant", ["VERSION", "SECURITY_GROUP_DESCRIPTION"])
def test_another_lustre_version_or_security_group_changes_the_name(
    constant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = name_of()
    monkeypatch.setattr(f"ultracluster.domain.lustre.{constant}", "another")

    assert name_of() != before


def test_what_changes_in_place_leaves_the_name() -> None:
    changes: list[dict[str, Any]] = [
        {"capacity_gib": 9600},
        {"compression": "NONE"},
        {"metadata_iops": 12_000},
        {"backup_retention_days": 0},
    ]
    for change in changes:
        assert name_of(changed(PERSISTENT_2, **change)) == name_of(), change
