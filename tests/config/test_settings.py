"""Settings files: what is reported about those that cannot be used, and what follows from the others."""

from pathlib import Path

import pytest
import yaml

from config.settings import load
from tests.config.settings_files import GOOD, QUEUE, RESOURCE, Write, changed, outcome, places, with_values


def test_shapes_and_rules_are_reported_at_once_each_with_its_line(write: Write) -> None:
    """A wrong shape or an unknown key hides no rule that is broken elsewhere, in its section or over several."""
    text = (
        GOOD.replace("account: null", "account: 1")
        .replace("zone_id: usw2-az4", "zone_id: use1-az4")
        .replace("10.0.64.0/18", "10.0.64.0/27")
        .replace("nat_addresses: 1", "nat_addresses: 9\n  flow_log_retention_days: 8")
        .replace("backup_retention_days: 7", "backup_retention_days: 91")
        .replace("retain: true", "retain: perhaps")
        .replace("name: null", "nome: null")
        .replace("ssh_cidr: null", "instance_type: t3.micro")
        .replace("instance_type: trn1.32xlarge", "instance_type: c7g.large")
        .replace("slurm: {custom_settings: {}}", "slurm: {idle_minutes: ten}")
        .replace("overrides: {}", "overrides: {HeadNode: {InstanceTypes: m6i.large}}")
    )
    path = write(text)
    found = [line.split(": got")[0].split(": unknown")[0].removeprefix(f"{path}:") for line in outcome(path)]
    assert found == [
        "2: account",
        "4: zone_id",
        "10: network.private_subnet_cidr",
        "11: network.nat_addresses",
        "12: network.flow_log_retention_days",
        "16: storage.file_system.backup_retention_days",
        "18: storage.retain",
        "20: cluster.nome",
        "23: cluster.head_node.instance_type",
        "23: cluster.head_node.instance_type",
        "30: cluster.queues[0].compute_resources[0].instance_type",
        "32: cluster.slurm.idle_minutes",
        "33: cluster.overrides.HeadNode.InstanceTypes",
    ]


def test_a_required_key_of_a_wrong_shape_hides_no_other_violation(write: Write) -> None:
    for old, new, place in (
        ("max_count: 16", "max_count: four", f"{RESOURCE}.max_count"),
        ("max_count: 16", "min_count: 0", f"{RESOURCE}.max_count"),
        ("name: trn1\naccount", "name: TRN1\naccount", "name"),
    ):
        assert old in GOOD, old
        text = changed(old, new).replace("ssh_cidr: null", "ssh_cidr: 0.0.0.0/0").replace("retain: true", "retain: 1")
        assert sorted(places(write(text))) == sorted([place, "cluster.head_node.ssh_cidr", "storage.retain"])


def test_a_default_in_the_place_of_a_wrong_value_is_not_blamed(write: Write) -> None:
    """The default of the left-out key breaks a rule beside what is in the same mapping; the file may not."""
    for old, new, place in (
        ("ssh_cidr: null", "ssh_key_name: mine\n    ssh_cidr: 5", "cluster.head_node.ssh_cidr"),
        ("ssh_cidr: null", "ssh_key_name: mine\n    ssh_cdir: 10.0.0.0/8", "cluster.head_node.ssh_cdir"),
        (
            "backup_retention_days: 7",
            "deployment_type: PERSISTENT_1\n    throughput_mbps_per_tib: '100'\n    backup_retention_days: 7",
            "storage.file_system.throughput_mbps_per_tib",
        ),
        (
            "backup_retention_days: 7\n  data_repositories: []",
            "backup_retention_days: none\n  data_repositories: [{path: /data}]",
            "storage.file_system.backup_retention_days",
        ),
    ):
        assert places(write(changed(old, new))) == [place]


def test_a_wrong_value_of_the_file_system_hides_only_what_depends_on_it(write: Write) -> None:
    disk = "storage.file_system"
    rest = "throughput_mbps_per_tib: 300\n    mount_dir: data"
    for wrong, named in (
        ("capacity_gib: x", ("capacity_gib", "throughput_mbps_per_tib", "mount_dir")),
        ("deployment_type: PERSISTANT_2", ("deployment_type", "mount_dir")),
    ):
        text = changed("capacity_gib: 4800", f"{wrong}\n    {rest}")
        assert sorted(places(write(text))) == sorted(f"{disk}.{key}" for key in named)


def test_what_is_no_settings_file(write: Write) -> None:
    odd = [
        (
            "",
            "settings.yaml:1: (file): got an empty file; should have settings: delete it, then ./ultracluster init set",
        ),
        (
            "# nothing",
            "settings.yaml:1: (file): got an empty file; should have settings: delete it, then ./ultracluster",
        ),
        ("- name: trn1", "settings.yaml:1: (file): got [{'name': 'trn1'}]; should be a mapping"),
        ("name: a: b", "settings.yaml:1: not YAML: mapping values are not allowed"),
        (
            "a: 1\nb: [1,\n2",
            "settings.yaml:4: not YAML: did not find expected ',' or ']', while parsing a flow",
        ),
        ("network:\n  cidr: a\n  cidr: b", "settings.yaml:3: cidr: given twice, first on line 2"),
        (changed("max_count: 16", "min_count: 0"), f"settings.yaml:28: {RESOURCE}.max_count: missing; this key is"),
    ]
    for text, reported in odd:
        assert reported in "\n".join(outcome(write(text))), text


def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert outcome(tmp_path / "none.yaml")[0].startswith(f"{tmp_path}/none.yaml: cannot be read: ")
    (tmp_path / "latin.yaml").write_bytes(b"name: \xe9")
    monkeypatch.chdir(tmp_path)
    assert outcome(tmp_path / "latin.yaml")[0].startswith("latin.yaml:1: byte 6 of the file, 0xe9, is not UTF-8; save")


def test_values_may_have_anchors(write: Write) -> None:
    text = changed("max_count: 16", "max_count: &n 16")
    assert load(write(text)).cluster.queues[0].compute_resources[0].max_count == 16


def test_a_generation_has_names_of_its_own(write: Write) -> None:
    first = load(write(changed("name: null", "name: null\n  generation: 1")))
    second = load(write(changed("name: null", "name: null\n  generation: 2")))
    named = load(write(changed("name: null", "name: mine\n  generation: 3")))

    assert first == load(write(GOOD))
    assert (first.cluster_spec.name, first.stack_name("cluster")) == ("trn1", "trn1-cluster")
    assert (second.cluster_spec.name, second.stack_name("cluster")) == ("trn1-2", "trn1-cluster-2")
    assert (named.cluster_spec.name, named.stack_name("cluster")) == ("mine-3", "trn1-cluster-3")
    assert {each.stack_name("storage") for each in (first, second, named)} == {"trn1-storage"}
    assert second.of_generation(1) == first


def test_a_default_that_breaks_a_rule_is_told_where_it_would_be(write: Write) -> None:
    old = "    backup_retention_days: 7\n  data_repositories: []"
    path = write(changed(old, "  data_repositories: [{path: /data}]"))

    [line] = outcome(path)

    place = "storage.file_system.backup_retention_days"
    assert line.startswith(f"{path}:13: {place}: got 7 by default; allowed: 0 with data repositories")


def test_rules_see_the_defaults_of_sections_that_are_left_out(write: Write) -> None:
    settings = yaml.safe_load(with_values({"account": 1, f"{QUEUE}.scratch_dir": "/fsx"}))
    del settings["storage"]
    account, scratch_dir = outcome(write(yaml.safe_dump(settings, sort_keys=False)))
    assert ": account: got 1;" in account
    assert f": {QUEUE}.scratch_dir: got '/fsx'; allowed: a path neither above nor below /fsx" in scratch_dir
