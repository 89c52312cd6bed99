"""What the head node of a machine writes for Slurm and for ParallelCluster's daemons, on plain values."""

import configparser
import json
import re
from typing import Any

import pytest

from emulator.machines.guest import slurm_configuration as slurm
from emulator.machines.guest.pace import FAST, REAL, Pace, parse

TRN1 = {"VCpuInfo": {"DefaultVCpus": 128, "DefaultThreadsPerCore": 2}, "MemoryInfo": {"SizeInMiB": 524288}}
C5 = {"VCpuInfo": {"DefaultVCpus": 8, "DefaultThreadsPerCore": 2}, "MemoryInfo": {"SizeInMiB": 16384}}
TYPES = {"trn1.32xlarge": TRN1, "c5.2xlarge": C5, "c5.large": {**C5, "MemoryInfo": {"SizeInMiB": 4096}}}

NODE = slurm.HeadNode(
    {
        "stack_name": "dev",
        "region": "us-west-2",
        "proxy": "NONE",
        "slurm_ddb_table": "parallelcluster-slurm-dev",
        "hosted_zone": "Z1",
        "dns_domain": "dev.pcluster.",
        "use_private_hostname": "false",
        "compute_node_bootstrap_timeout": 2100,
    },
    "i-1",
    "ip-10-0-0-5.us-west-2.compute.internal",
    "10.0.0.5",
)


def resource(name: str = "trn1-32xl", **more: Any) -> dict[str, Any]:
    return {
        "Name": name,
        "InstanceType": "trn1.32xlarge",
        "MinCount": 0,
        "MaxCount": 2,
        "DisableSimultaneousMultithreading": False,
        "Efa": {"Enabled": False, "GdrSupport": False},
        "StaticNodePriority": 1,
        "DynamicNodePriority": 1000,
        **more,
    }


def queue(*resources: dict[str, Any], name: str = "trn1", **more: Any) -> dict[str, Any]:
    return {"Name": name, "CapacityType": "ONDEMAND", "ComputeResources": list(resources), **more}


def configuration(*queues: dict[str, Any], **settings: Any) -> dict[str, Any]:
    settings = {"ScaledownIdletime": 10, "EnableMemoryBasedScheduling": False, **settings}
    return {"Scheduling": {"ScalingStrategy": "all-or-nothing", "SlurmQueues": list(queues), "SlurmSettings": settings}}


def files(*queues: dict[str, Any], pace: Pace = REAL, **settings: Any) -> dict[str, str]:
    return slurm.slurm_files(configuration(*queues, **settings), TYPES, NODE, pace)


def partition(*queues: dict[str, Any], name: str = "trn1") -> list[str]:
    return files(*queues)[f"pcluster/slurm_parallelcluster_{name}_partition.conf"].splitlines()[1:]


def test_dynamic_nodes_of_a_queue_whose_jobs_get_whole_nodes() -> None:
    assert partition(queue(resource(Efa={"Enabled": True}), JobExclusiveAllocation=True)) == [
        "",
        "NodeName=trn1-dy-trn1-32xl-[1-2] CPUs=128 RealMemory=498073 State=CLOUD "
        "Feature=dynamic,trn1.32xlarge,trn1-32xl,efa Weight=1000",
        "",
        "NodeSet=trn1_nodes Nodes=trn1-dy-trn1-32xl-[1-2]",
        "PartitionName=trn1 Nodes=trn1_nodes MaxTime=INFINITE State=UP Default=YES OverSubscribe=EXCLUSIVE",
    ]


def test_static_and_dynamic_nodes_of_several_resources_with_settings_of_their_own() -> None:
    written = partition(
        queue(
            resource("a", MinCount=1, MaxCount=3, CustomSlurmSettings={"Gres": "neuron:16"}),
            resource("b", MinCount=1, MaxCount=1, DisableSimultaneousMultithreading=True, SchedulableMemory=4000),
            resource("c", InstanceType=None, Instances=[{"InstanceType": name} for name in ("c5.2xlarge", "c5.large")]),
            CustomSlurmSettings={"MaxNodes": 2},
        )
    )
    assert written == [
        "",
        "NodeName=trn1-st-a-[1-1] CPUs=128 RealMemory=498073 State=CLOUD Feature=static,trn1.32xlarge,a Weight=1 "
        "Gres=neuron:16",
        "NodeName=trn1-dy-a-[1-2] CPUs=128 RealMemory=498073 State=CLOUD Feature=dynamic,trn1.32xlarge,a Weight=1000 "
        "Gres=neuron:16",
        "NodeName=trn1-st-b-[1-1] CPUs=64 RealMemory=4000 State=CLOUD Feature=static,trn1.32xlarge,b Weight=1",
        "NodeName=trn1-dy-c-[1-2] CPUs=8 RealMemory=3891 State=CLOUD Feature=dynamic,c Weight=1000",
        "",
        "NodeSet=trn1_nodes Nodes=trn1-st-a-[1-1],trn1-dy-a-[1-2],trn1-st-b-[1-1],trn1-dy-c-[1-2]",
        "PartitionName=trn1 Nodes=trn1_nodes MaxTime=INFINITE State=UP Default=YES MaxNodes=2",
    ]


def test_only_the_first_queue_is_the_default_and_all_are_included() -> None:
    queues = queue(resource(MinCount=1)), queue(resource(MinCount=2), name="block")
    assert not any("Default" in line for line in partition(*queues, name="block"))
    assert files(*queues)["slurm_parallelcluster.conf"].splitlines()[2:] == [
        "SlurmctldHost=ip-10-0-0-5(10.0.0.5)",
        "SuspendTime=600",
        "ResumeTimeout=2100",
        "SelectTypeParameters=CR_CPU",
        "include /opt/slurm/etc/pcluster/slurm_parallelcluster_trn1_partition.conf",
        "include /opt/slurm/etc/pcluster/slurm_parallelcluster_block_partition.conf",
        "SuspendExcNodes=trn1-st-trn1-32xl-[1-1],block-st-trn1-32xl-[1-2]",
    ]
    assert json.loads(files(*queues)["pcluster/parallelcluster_partition_nodelist_mapping.json"]) == {
        "trn1": "trn1-st-trn1-32xl-[1-1],trn1-dy-trn1-32xl-[1-1]",
        "block": "block-st-trn1-32xl-[1-2]",
    }


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"ScaledownIdletime": -1}, "SuspendTime=-1"),
        ({"ScaledownIdletime": 3}, "SuspendTime=180"),
        ({"EnableMemoryBasedScheduling": True}, "SelectTypeParameters=CR_CPU_Memory"),
    ],
)
def test_settings_of_the_scheduler(settings: dict[str, Any], line: str) -> None:
    assert line in files(queue(resource()), **settings)["slurm_parallelcluster.conf"].splitlines()


@pytest.mark.parametrize(("with_memory", "limits"), [(False, []), (True, ["task=1", "OverMemoryKill"])])
def test_memory_of_jobs_is_limited_with_memory_based_scheduling_and_only_then(
    with_memory: bool, limits: list[str]
) -> None:
    written = files(queue(resource()), EnableMemoryBasedScheduling=with_memory)["slurm_parallelcluster.conf"]
    assert re.findall(r"^JobAcctGather(?:Frequency|Params)=(.*)$", written, re.MULTILINE) == limits


def test_own_settings_are_read_last() -> None:
    written = files(queue(resource()), CustomSlurmSettings=[{"SchedulerParameters": "bf_continue"}, {"KillWait": 60}])
    assert written["pcluster/custom_slurm_settings_include_file_slurm.conf"].splitlines()[1:] == [
        "SchedulerParameters=bf_continue",
        "KillWait=60",
    ]
    assert [line for line in written["slurm.conf"].splitlines() if line.startswith("include")] == [
        "include slurm_parallelcluster.conf",
        "include pcluster/custom_slurm_settings_include_file_slurm.conf",
        "include slurm_parallelcluster_topology.conf",
    ]


def test_accounting_is_there_with_a_database_and_only_then() -> None:
    def told(settings: dict[str, Any]) -> tuple[list[str], list[str]]:
        written = files(queue(resource()), **settings)
        slurmdbd = written["slurm_parallelcluster_slurmdbd.conf"].splitlines()
        controller = written["slurm_parallelcluster.conf"].splitlines()
        return [line for line in slurmdbd if "=" in line], [line for line in controller if re.match("Acc|JobA", line)]

    assert told({}) == ([], [])
    database = {"Uri": "db.example:3307", "UserName": "slurm", "PasswordSecretArn": "arn:aws:secretsmanager:..."}
    storage = ["DbdHost=ip-10-0-0-5", "StorageHost=db.example", "StoragePort=3307", "StorageLoc=dev"]
    # tests/unit/slurm/test_slurm_config_generator of the cookbook
    assert told({"Database": database}) == (
        [*storage, "StorageUser=slurm", "StoragePass=dummy"],
        [
            "AccountingStorageType=accounting_storage/slurmdbd",
            "AccountingStorageHost=ip-10-0-0-5",
            "AccountingStoragePort=6819",
            "AccountingStorageUser=slurm",
            "JobAcctGatherType=jobacct_gather/linux",
        ],
    )
    named, _ = told({"Database": {**database, "Uri": "db.example", "DatabaseName": "history"}})
    assert {"StoragePort=3306", "StorageLoc=history"} <= set(named)


COOKBOOK = """
ClusterName=dev SlurmUser=slurm SlurmctldPort=6820-6829 SlurmdPort=6818 AuthType=auth/munge
StateSaveLocation=/var/spool/slurm.state SlurmdSpoolDir=/var/spool/slurmd SwitchType=switch/none
SlurmctldPidFile=/var/run/slurmctld.pid SlurmdPidFile=/var/run/slurmd.pid ReconfigFlags=KeepPartState TreeWidth=30
SuspendProgram=/opt/parallelcluster/scripts/slurm/slurm_suspend
ResumeProgram=/opt/parallelcluster/scripts/slurm/slurm_resume
ResumeFailProgram=/opt/parallelcluster/scripts/slurm/slurm_suspend
RebootProgram=/sbin/reboot SuspendTimeout=120 PrivateData=cloud ResumeRate=0 SuspendRate=0
Prolog=/opt/slurm/etc/scripts/prolog.d/* Epilog=/opt/slurm/etc/scripts/epilog.d/*
SchedulerParameters=nohold_on_prolog_fail BatchStartTimeout=180 SlurmctldTimeout=300 SlurmdTimeout=180 InactiveLimit=0
MinJobAge=300 KillWait=30 Waittime=0 MessageTimeout=60 AuthInfo=cred_expire=70 EnforcePartLimits=ALL
SchedulerType=sched/backfill MpiDefault=none ReturnToService=1 GresTypes=gpu SelectType=select/cons_tres
SlurmctldDebug=verbose SlurmctldLogFile=/var/log/slurmctld.log SlurmdDebug=info SlurmdLogFile=/var/log/slurmd.log
DebugFlags=Power JobCompType=jobcomp/none
"""
"""What slurm.conf.erb says for a cluster with DNS names of its own (aws-parallelcluster-cookbook at bb43894)."""

DIFFERENT = {
    "SlurmctldParameters=idle_on_node_suspend,power_save_min_interval=30,power_save_interval=10,"
    "node_reg_mem_percent=75,enable_expedited_requeue",
    "SlurmdParameters=config_overrides",
    "ProctrackType=proctrack/linuxproc",
    "TaskPlugin=task/none",
}


def test_at_the_real_pace_slurm_conf_is_the_cookbooks_but_for_what_a_machine_lacks() -> None:
    lines = files(queue(resource()))["slurm.conf"].splitlines()
    written = {line for line in lines if "=" in line}
    assert written - set(COOKBOOK.split()) == DIFFERENT
    assert set(COOKBOOK.split()) <= written


def test_only_at_a_fast_pace_a_program_waits_for_the_nodes_of_jobs() -> None:
    added = {pace: "PrologSlurmctld" in files(queue(resource()), pace=pace)["slurm.conf"] for pace in (REAL, FAST)}
    assert added == {REAL: False, FAST: True}


def test_what_the_daemons_are_told() -> None:
    written = slurm.plugin_files(configuration(queue(resource())), NODE, FAST)
    manager = configparser.ConfigParser()
    manager.read_string(written["/etc/parallelcluster/slurm_plugin/parallelcluster_clustermgtd.conf"])
    section = manager["clustermgtd"]
    assert (section["dynamodb_table"], section["dns_domain"]) == ("parallelcluster-slurm-dev", "dev.pcluster.")
    assert (section.getint("loop_time"), section.getint("node_replacement_timeout")) == (5, 2100)
    assert section["heartbeat_file_path"] == "/opt/slurm/etc/pcluster/.slurm_plugin/clustermgtd_heartbeat"


def test_how_each_kind_of_capacity_is_launched() -> None:
    reserved = {"CapacityReservationTarget": {"CapacityReservationId": "cr-1"}}
    several: dict[str, Any] = {"InstanceType": None, "Instances": [{"InstanceType": "c5.2xlarge"}], "SpotPrice": 2}
    launches = slurm.fleet(
        configuration(
            queue(resource("own", **reserved), resource("one")),
            queue(resource(), name="block", CapacityType="CAPACITY_BLOCK", **reserved),
            queue(
                resource(**several),
                name="spot",
                CapacityType="SPOT",
                AllocationStrategy="lowest-price",
                Networking={"SubnetIds": ["subnet-1"]},
            ),
        )
    )
    trn1 = {"Api": "run-instances", "Instances": [{"InstanceType": "trn1.32xlarge"}]}
    assert launches["trn1"] == {
        "own": {"CapacityType": "on-demand", "CapacityReservationId": "cr-1", **trn1},
        "one": {"CapacityType": "on-demand", **trn1},
    }
    assert launches["block"]["trn1-32xl"]["CapacityType"] == "capacity-block"
    assert launches["block"]["trn1-32xl"]["CapacityReservationId"] == "cr-1"
    assert launches["spot"]["trn1-32xl"] == {
        "CapacityType": "spot",
        "Api": "create-fleet",
        "Instances": [{"InstanceType": "c5.2xlarge"}],
        "Networking": {"SubnetIds": ["subnet-1"]},
        "AllocationStrategy": "lowest-price",
        "MaxPrice": 2,
    }


def test_a_pace_is_a_speed_and_what_differs_from_it() -> None:
    pace = parse('{"speed": "fast", "suspend_seconds": 20, "what_only_the_server_knows": 1}')
    assert (pace.loop_time, pace.suspend_seconds) == (FAST.loop_time, 20)
    assert parse("{}") == REAL
