"""What each rung does, with the commands that a person would type, and what it sees."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import timedelta
from itertools import zip_longest
from typing import Any, Final

from config.settings import Settings
from scripts.check.plan.model import REPLACING
from scripts.core.errors import ExitCode
from scripts.core.figures import counted, duration
from scripts.rehearse.prove.ladder import SMALL, Interface
from scripts.rehearse.prove.walk import Ran, RungError, Walk
from ultracluster.domain import neuron

_ANY: Final = (ExitCode.DONE, ExitCode.FAILED)
_MOST_MINUTES: Final = {"creation": 30, "update": 30, "node": 15, "compile": 20}
"""After which what is expected counts as different."""
_WAIT: Final = 60
"""Minutes for what should take a few."""
_CLOSE: Final = 0.05
"""Relative difference of two bandwidths that are the same."""
_DEVICES: Final = 8
_SEQUENCES: Final = 2 * 3800
_SLOWEST: Final = 0.8
_STEP: Final = 200
_PARAMETER: Final = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
_OF_ONE_CHIP: Final = "-- --steps 50 --warmup-steps 10 --global-batch 256"
_OF_TWO_NODES: Final = f"-- --steps {_STEP} --warmup-steps 40"
_OF_MANY: Final = "-- --optimizer lamb --steps 1500 --warmup-steps 300 --checkpoint-interval 100"
_OF_A_NODE: Final = (
    "uname -r; /sbin/modinfo neuron; lsmod | grep ^neuron; echo rtprio $(ulimit -r); "
    "/opt/aws/neuron/bin/neuron-ls --json-output"
)
_UNKNOWN: Final = "?"
"""The state of a job of which there is no answer."""
_SLEEP: Final = "sbatch --parsable --exclusive --nodes={} --time={} --wrap 'srun sleep 600'"


def storage(walk: Walk) -> None:
    """Create network and storage, and grow both in place."""
    name, settings = walk.name, walk.write("storage", grown=False)
    ready = walk.run("preflight", name, "-o", "json", codes=None)
    results = ready.json().get("results", [])
    unknown = [each["check"] for each in results if each.get("status") == "UNKNOWN"]
    failed = [each["check"] for each in results if each.get("status") == "FAIL"]
    seen = f"exit code {ready.code}; failed: {', '.join(failed) or 'none'}; unknown: {', '.join(unknown) or 'none'}"
    walk.observe("ready-account", good=ready.code == ExitCode.DONE and not unknown, seen=seen, logs=[ready.log])
    if failed or ready.code == ExitCode.UNUSABLE:
        raise RungError(f"the account is not ready: {', '.join(failed) or ready.errors.strip()}, {ready.log}")
    stack = settings.stack_name("storage")
    if walk.status_of("storage"):
        for each in ("grown-without-replacement", "grow-in-place", "second-nat-address"):
            walk.pass_over(each, "an earlier walk has created the file system, and may have grown it")
        walk.write("storage")
        walk.cdk("deploy", stack)
        return
    walk.cdk("deploy", stack)
    file_system, gateways = _file_system(walk), _gateways(walk)
    walk.write("storage")
    plan = walk.run("plan", name, "-o", "json", codes=None)
    stacks = {each["name"]: each["changes"] for each in plan.json().get("stacks", [])}
    parts = [settings.stack_name(part) for part in ("network", "storage")]
    changes = {(change["logical_id"], change["effect"]) for part in parts for change in stacks.get(part, [])}
    replaced = [logical_id for logical_id, effect in changes if effect in [str(each) for each in REPLACING]]
    effects = Counter(effect for _, effect in changes)
    seen = ", ".join(f"{count} {effect}" for effect, count in sorted(effects.items())) or plan.errors
    seen += f"; replaced: {', '.join(sorted(replaced)) or 'none'}"
    walk.observe("grown-without-replacement", good=bool(changes) and not replaced, seen=seen, logs=[plan.log])
    if replaced or plan.code != ExitCode.DONE:
        raise RungError(f"the plan would replace {', '.join(replaced) or 'something, or is blocked'}, {plan.log}")
    walk.cdk("deploy", stack)
    walk.until(lambda: _file_system(walk)["Lifecycle"] == "AVAILABLE", minutes=_WAIT)
    grown, gateways_now = _file_system(walk), _gateways(walk)
    actions = [each["AdministrativeActionType"] for each in grown.get("AdministrativeActions", [])]
    is_same = grown["FileSystemId"] == file_system["FileSystemId"]
    seen = f"{file_system['FileSystemId']} of {file_system['StorageCapacity']} GiB, then {grown['FileSystemId']} of "
    seen += f"{grown['StorageCapacity']} GiB; actions: {', '.join(actions) or 'none'}"
    is_grown = grown["StorageCapacity"] > file_system["StorageCapacity"]
    walk.observe("grow-in-place", good=is_same and is_grown and "FILE_SYSTEM_UPDATE" in actions, seen=seen)
    seen = f"{gateways}, then {gateways_now}"
    is_good = gateways.keys() == gateways_now.keys() and list(gateways_now.values()) == [2]
    walk.observe("second-nat-address", good=is_good, seen=seen)


def head_node(walk: Walk) -> None:
    """Deploy the cluster without nodes."""
    settings = walk.write("head-node")
    deployed = walk.run("deploy", walk.name, "--yes", "-o", "json")
    walk.observe(
        "creation",
        good=deployed.seconds <= _MOST_MINUTES["creation"] * 60,
        seen=f"complete after {duration(deployed.seconds)}",
        logs=[deployed.log],
    )
    deployment = walk.deployment
    messages = deployment.outputs(deployment.stack_name("cluster")).get("ValidationMessages")
    accepted = {each.validator for each in settings.cluster.accepted_warnings}
    is_good = messages is not None and not _unaccepted(messages, accepted)
    walk.observe("validators", good=is_good, seen=messages or "no such output", logs=[deployed.log])
    answered = walk.on_head_node("hostname; uname -r")
    kernel = (answered.output.split() or [""])[-1]
    walk.observe("session-manager", good=answered.code == ExitCode.DONE, seen=answered.text, logs=[answered.log])
    sdk = settings.cluster.neuron_sdk
    assert sdk is not None  # noqa: S101 - the first queue has Trainium: `ladder.violations`
    tested = neuron.RELEASES[sdk].kernels[settings.cluster_spec.os]
    is_tested = any(kernel.startswith(f"{each}.") for each in tested)
    walk.observe("kernel", good=is_tested, seen=f"{kernel}; tested: {', '.join(tested)}", logs=[answered.log])
    denied = walk.on_head_node(f"aws ssm get-parameter --region {settings.region} --name {_PARAMETER}", user="root")
    is_denied = denied.code != ExitCode.DONE and "AccessDenied" in denied.text
    walk.observe("parameters-denied", good=is_denied, seen=denied.text, logs=[denied.log])
    _of_sections(walk, settings)
    walk.until(lambda: _software(walk) in ("ready", "failed"), minutes=_WAIT)
    status = walk.run("status", walk.name, "-o", "json", codes=None)
    software = status.json().get("software") or {}
    seen = f"{software.get('state')}; {software.get('reason') or 'no reason'}"
    walk.observe("head-node-software", good=software.get("state") == "ready", seen=seen, logs=[status.log])


def _unaccepted(messages: str, accepted: Collection[str]) -> list[str]:
    """Return the validators whose messages the settings do not accept, from JSON that may be cut off at its end.

    https://docs.aws.amazon.com/parallelcluster/latest/ug/cloudformation-custom-resource.html
    """
    levels = re.findall(r'"level":\s*"(\w+)"', messages)
    kinds = re.findall(r'"type":\s*"(\w+)"', messages)
    if not (levels or messages.strip() == "[]"):
        return ["unknown"]
    said = zip_longest(levels, kinds, fillvalue="cut off")
    return [kind for level, kind in said if level != "INFO" and kind not in accepted]


def _of_sections(walk: Walk, settings: Settings) -> None:
    """Look at what only some settings have."""
    people = {each.name: each.uid for each in settings.users}
    looks: list[tuple[str, object, str, Callable[[Ran], bool]]] = [
        ("homes-mounted", settings.homes, "findmnt /home && df -h /home", lambda ran: ran.code == 0),
        (
            "database-reached",
            settings.accounting,
            "PATH=/opt/slurm/bin:$PATH; sacctmgr --noheader show cluster",
            lambda ran: settings.cluster_spec.name in ran.output,
        ),
        (
            "users-exist",
            people or None,
            f"sudo -n -l -U {walk.deployment.system_user}; getent passwd {' '.join(people)}",
            lambda ran: "not allowed" in ran.text and people.items() <= _accounts(ran.output).items(),
        ),
    ]
    for name, section, script, is_good in looks:
        if section is None:
            walk.pass_over(name, "the settings have nothing of that kind")
            continue
        ran = walk.on_head_node(script, user="root")
        walk.observe(name, good=is_good(ran), seen=ran.text, logs=[ran.log])


def _accounts(passwd: str) -> dict[str, int]:
    """Return the numbers of users by name, from lines of passwd(5)."""
    return {name: int(number) for name, number in re.findall(r"^([^:\s]+):[^:]*:(\d+):", passwd, re.MULTILINE)}


def roll_back(walk: Walk) -> None:
    """Update the cluster, let an update fail, lead out of it; stop the head node, and recover it."""
    settings = walk.write("roll-back")
    before = walk.head_node()["InstanceId"]
    walk.edit_script('log "edited"')
    edited = walk.run("deploy", walk.name, "--yes", "-o", "json", codes=_ANY)
    is_same = walk.head_node()["InstanceId"] == before
    is_quick = edited.seconds <= _MOST_MINUTES["update"] * 60
    status = walk.status_of("cluster")
    seen = f"{status} after {duration(edited.seconds)}, {'the same' if is_same else 'another'} head node"
    is_good = status == "UPDATE_COMPLETE" and is_same and is_quick
    walk.observe("update-in-place", good=is_good, seen=seen, logs=[edited.log])
    if edited.code != ExitCode.DONE or not is_same:
        raise RungError(f"the update of an edited script: {seen}, {edited.log}")
    walk.edit_script("exit 1")
    failed = walk.run("deploy", walk.name, "--yes", "-o", "json", codes=_ANY)
    diagnosis = walk.run("diagnose", walk.name, "-o", "json", codes=_ANY)
    nodes = walk.slurm("sinfo --noheader")
    inner = (walk.deployment.stack(settings.cluster_spec.name) or {}).get("StackStatus", "gone")
    outer = walk.status_of("cluster")
    names_script = "OnNodeUpdated" in diagnosis.output or "node_launcher" in diagnosis.output
    seen = f"{settings.stack_name('cluster')} {outer}, {settings.cluster_spec.name} {inner}; diagnose "
    seen += f"{'names' if names_script else 'does not name'} the script; "
    seen += "Slurm answers" if nodes else "Slurm does not answer"
    is_good = outer == "UPDATE_ROLLBACK_FAILED" and inner == "UPDATE_ROLLBACK_COMPLETE" and names_script and bool(nodes)
    walk.observe("failed-update", good=is_good, seen=seen, logs=[failed.log, diagnosis.log])
    walk.edit_script("")
    led_out = walk.run("deploy", walk.name, "--yes", "-o", "json", codes=_ANY)
    is_healthy = walk.until(lambda: _is_healthy(walk), minutes=_WAIT)
    plan = walk.run("plan", walk.name, "-o", "json", codes=None)
    is_empty = plan.json().get("empty") is True
    seen = f"{walk.status_of('cluster')}, {'healthy' if is_healthy else 'unhealthy'}, plan "
    seen += "empty" if is_empty else "not empty"
    is_good = led_out.code == ExitCode.DONE and is_healthy and is_empty
    walk.observe("way-out", good=is_good, seen=seen, logs=[led_out.log, plan.log])
    if led_out.code != ExitCode.DONE:
        raise RungError(f"the way out of the roll-back that failed did not lead out, {led_out.log}")
    _recover(walk, before)


def _recover(walk: Walk, instance_id: str) -> None:
    walk.on_head_node("date >~/kept-by-prove")
    ec2 = walk.deployment.account.client("ec2")
    ec2.stop_instances(InstanceIds=[instance_id])
    walk.until(lambda: walk.head_node()["State"]["Name"] == "stopped", minutes=_WAIT, every=10)
    recovered = walk.run("recover", walk.name, "--confirm", walk.settings.name, codes=_ANY)
    kept = walk.on_head_node("cat ~/kept-by-prove")
    nodes = walk.slurm("sinfo --noheader")
    is_same = walk.head_node()["InstanceId"] == instance_id
    seen = f"{'the same' if is_same else 'another'} instance; the file in /home "
    seen += f"{'is there' if kept.code == 0 else 'is gone'}; Slurm {'answers' if nodes else 'does not answer'}"
    is_good = recovered.code == ExitCode.DONE and is_same and kept.code == 0 and bool(nodes)
    walk.observe("head-node-recovered", good=is_good, seen=seen, logs=[recovered.log])
    if recovered.code != ExitCode.DONE:
        raise RungError(f"the head node did not come back, {recovered.log}")


def one_chip(walk: Walk) -> None:
    """Add a queue of one trn1.2xlarge, and train on it."""
    walk.write("one-chip")
    before = walk.head_node()["InstanceId"]
    deployed = _deploy_stopped(walk)
    is_same = walk.head_node()["InstanceId"] == before
    seen = f"{walk.status_of('cluster')} after {duration(deployed.seconds)}, "
    seen += f"{'the same' if is_same else 'another'} head node"
    is_good = is_same and walk.status_of("cluster") == "UPDATE_COMPLETE"
    walk.observe("new-queue", good=is_good, seen=seen, logs=[deployed.log])
    if walk.is_emulated:
        return
    ran = walk.on_head_node(f"srun --partition={SMALL} --nodes=1 --time=30 bash -c '{_OF_A_NODE}'", minutes=45)
    is_up = ran.code == ExitCode.DONE and ran.seconds <= _MOST_MINUTES["node"] * 60
    cores = re.search(r'"nc_count":\s*(\d+)', ran.output)
    is_good = is_up and cores is not None and cores[1] == "2"
    seen = f"{duration(ran.seconds)}; cores: {cores[1] if cores else 'not known'}"
    walk.observe("node-start", good=is_good, seen=seen, logs=[ran.log])
    is_loaded = re.search(r"^neuron\s", ran.output, re.MULTILINE) is not None
    walk.observe("driver-built", good=is_loaded, seen=ran.output, logs=[ran.log])
    limit = re.search(r"^rtprio (\S+)", ran.output, re.MULTILINE)
    walk.observe("real-time-limit", good=bool(limit and limit[1] == "99"), seen=limit[0] if limit else ran.errors)
    if ran.code != ExitCode.DONE:
        raise RungError(f"the node did not run srun, {ran.log}")
    trained = _train(walk, "small", f"export WORKERS_PER_NODE=2; {{}} --queue {SMALL} --nodes 1 {_OF_ONE_CHIP}", 60)
    walk.observe("compiled", good=trained.is_compiled, seen=trained.compile_end, logs=trained.logs)
    losses = [each["loss"] for each in trained.metrics]
    seen = f"loss {losses[0]:.3f} at first, {losses[-1]:.3f} at last" if losses else "no step"
    is_good = trained.is_done and bool(losses) and losses[-1] < losses[0]
    walk.observe("loss-on-a-chip", good=is_good, seen=f"{seen}; {trained.end}", logs=trained.logs)
    status = walk.run("status", walk.name, "-o", "json", codes=None)
    spending = status.json().get("spending") or {}
    counted = spending.get("nodes_usd")
    seen = "nothing counted" if counted is None else f"${counted:.2f} counted"
    walk.observe("guard-counts", good=bool(counted), seen=seen, logs=[status.log])


def two_nodes(walk: Walk) -> None:
    """Measure two nodes with both types of EFA interfaces, and train on them."""
    walk.write("two-nodes")
    _deploy_stopped(walk)
    if walk.is_emulated:
        job = _number(walk.slurm(_SLEEP.format(2, 30)))
        walk.until(lambda: _state(walk, job) == "R", minutes=_WAIT, every=10)
        walk.slurm(f"scancel {job}")
        _see_idle_nodes_end(walk)
        return
    alone = _accept(walk, "efa-only")
    devices = walk.on_head_node("srun --nodes=1 --time=20 /opt/amazon/efa/bin/fi_info -p efa", minutes=40)
    count = len(set(re.findall(r"domain:\s*(\S+)-rdm", devices.output)))
    walk.observe("efa-devices", good=count == _DEVICES, seen=f"{count} devices", logs=[devices.log])
    trained = _train(walk, "two", f"{{}} --nodes 2 {_OF_TWO_NODES}", 60)
    speeds = [each["sequences_per_second"] for each in trained.metrics if each["step"] >= _STEP]
    is_quick = trained.is_compiled and trained.compiling <= timedelta(minutes=_MOST_MINUTES["compile"])
    is_good = bool(speeds) and speeds[-1] >= _SLOWEST * _SEQUENCES and is_quick
    seen = f"{speeds[-1]:.0f} sequences/s" if speeds else f"step {_STEP} was not reached: {trained.end}"
    seen += f"; the compile job ran for {duration(trained.compiling)}: {trained.compile_end}"
    walk.observe("throughput", good=is_good, seen=seen, logs=trained.logs)
    _see_idle_nodes_end(walk)
    walk.write("two-nodes", interface="efa")
    _deploy_stopped(walk)
    _accept(walk, "efa", other=alone)


def _deploy_stopped(walk: Walk) -> Ran:
    """Deploy while the fleet is stopped, as a change of the type of EFA interfaces needs it, and start the fleet."""
    walk.run("fleet", "stop", walk.name, "--yes", "--force")
    deployed = walk.run("deploy", walk.name, "--yes", "-o", "json")
    walk.run("fleet", "start", walk.name)
    return deployed


def _see_idle_nodes_end(walk: Walk) -> None:
    idle = walk.settings.cluster.slurm.idle_minutes
    started = walk.clock.now()
    is_in_time = walk.until(lambda: not walk.compute_nodes(), minutes=idle + _MOST_MINUTES["node"], every=20)
    took = duration(walk.clock.now() - started)
    seen = f"no node {took} after the last job" if is_in_time else f"nodes still run {took} after the last job"
    walk.observe("idle-nodes-end", good=is_in_time, seen=f"{seen}; idle_minutes: {idle}")


def _accept(walk: Walk, interface: Interface, other: float | None = None) -> float:
    """Let the acceptance job measure two nodes, record what it says, and return GB/s; 0: it has none.

    Args:
        walk: The walk.
        interface: The type of EFA interfaces.
        other: GB/s of the other type, to which it is compared; None: to none.
    """
    submit = "cd; sbatch --parsable --nodes=2 --time=40 /opt/ultracluster/current/health/acceptance.sh"
    job = _number(walk.on_head_node(submit).output.strip())
    walk.until(lambda: not _state(walk, job), minutes=_WAIT)
    read = walk.on_head_node(f"cd; cat acceptance-{job}.json slurm-{job}.out")
    answer = _json(read.output)
    measured = max((each.get("bandwidth") or 0.0 for each in answer.get("runs", [])), default=0.0)
    is_close = measured > 0 if other is None else other > 0 and abs(measured - other) <= _CLOSE * other
    verdict = answer.get("verdict", "no verdict")
    seen = f"{verdict}, {measured:.1f} GB/s" + ("" if other is None else f"; efa-only: {other:.1f} GB/s")
    walk.observe(interface, good=verdict == "good" and is_close, seen=seen, logs=[read.log])
    return measured


def sixteen_nodes(walk: Walk) -> None:
    """Train on all nodes, and terminate one under the job."""
    walk.write("sixteen-nodes")
    _deploy_stopped(walk)
    count = walk.choices.nodes
    output = f"{walk.settings.storage.file_system.mount_dir}/runs/sixteen"
    if walk.is_emulated:
        job = _number(walk.slurm(_SLEEP.format(count, 30)))
    else:
        script = f"{_submit_words(output, 150)} --nodes {count} {_OF_MANY}"
        job = _job_of(walk.on_head_node(script, minutes=60), "train")
    counts, states = set(), [_UNKNOWN]

    def is_running() -> bool:
        counts.add(len(walk.compute_nodes()))
        states.append(_state(walk, job))
        return states[-1] in ("R", "")

    walk.until(is_running, minutes=_WAIT)
    counts.add(now := len(walk.compute_nodes()))
    is_whole = states[-1] == "R" and now == count
    seen = f"numbers of nodes that were seen: {', '.join(map(str, sorted(counts)))}"
    walk.observe("all-or-none", good=is_whole and counts <= {0, count}, seen=seen)
    if not is_whole:
        raise RungError(f"the job does not run on {counted(count, 'nodes')}: {seen}")
    if not walk.is_emulated:
        walk.until(lambda: bool(_checkpoints(walk, output)), minutes=_WAIT)
    killed = walk.compute_nodes()[-1]["InstanceId"]
    walk.deployment.account.client("ec2").terminate_instances(InstanceIds=[killed])
    started = time.monotonic()
    is_requeued = walk.until(lambda: _restarts(walk, job) > 0, minutes=20, every=10)
    seen = f"{killed} was terminated; requeued after {duration(time.monotonic() - started)}"
    is_back = is_requeued and walk.until(lambda: _state(walk, job) == "R", minutes=40)
    seen += f", {'runs' if is_back else 'does not run'} again after {duration(time.monotonic() - started)}"
    walk.observe("requeued", good=is_requeued and is_back, seen=seen)
    if not walk.is_emulated:
        walk.until(lambda: len(_attempts(walk, output)) > 1, minutes=_WAIT)
        starts = _attempts(walk, output)
        log = walk.on_head_node(f"tail --lines=400 {output}/train-{job}.log")
        seen = f"starts from steps {', '.join(map(str, starts)) or 'none'}"
        walk.observe("resumed", good=len(starts) > 1 and starts[-1] > 0, seen=seen, logs=[log.log])
    walk.slurm(f"scancel {job}")


def destroy(walk: Walk) -> None:
    """Delete everything, and list what is left."""
    if not walk.file.exists():
        walk.write("storage")
    words = ("--all", "--unprotect", "--no-final-backup", "--sweep", "--force", "--confirm", walk.settings.name)
    destroyed = walk.run("destroy", walk.name, *words, codes=None)
    left = [part for part in walk.settings.parts if walk.status_of(part)]
    if destroyed.code != ExitCode.DONE or left:
        again = walk.run("destroy", walk.name, *words, codes=None)
        left = [part for part in walk.settings.parts if walk.status_of(part)]
        destroyed = again._replace(seconds=destroyed.seconds + again.seconds)
    seen = f"exit code {destroyed.code} after {duration(destroyed.seconds)}; stacks left: {', '.join(left) or 'none'}"
    walk.observe("destroyed", good=destroyed.code == ExitCode.DONE and not left, seen=seen, logs=[destroyed.log])
    inventory = walk.run("inventory", walk.name, "-o", "json", codes=None)
    answer = inventory.json()
    costly = [each["type"] for each in answer.get("resources", []) if each.get("dollars_per_month")]
    month = answer.get("dollars_per_month")
    unlisted = answer.get("not_listed", [])
    seen = f"${month} a month; with a cost: {', '.join(costly) or 'none'}; not listed: {', '.join(unlisted) or 'none'}"
    is_good = month == 0 and not costly and not unlisted
    walk.observe("nothing-left", good=is_good, seen=seen, logs=[inventory.log])
    if destroyed.code != ExitCode.DONE or left or costly:
        raise RungError(f"not everything is deleted: {seen}, {destroyed.log}")


CLIMBED: Final[Mapping[str, Callable[[Walk], None]]] = {
    "storage": storage,
    "head-node": head_node,
    "roll-back": roll_back,
    "one-chip": one_chip,
    "two-nodes": two_nodes,
    "sixteen-nodes": sixteen_nodes,
    "destroy": destroy,
}
"""What is done in each rung."""


# --- what rungs ask ---


def _file_system(walk: Walk) -> Mapping[str, Any]:
    """Return the file system as FSx describes it."""
    deployment = walk.deployment
    ids = deployment.physical_ids(deployment.stack_name("storage")).values()
    listed = deployment.account.list("fsx", "describe_file_systems")
    found: list[Mapping[str, Any]] = [each for each in listed if each["FileSystemId"] in ids]
    if len(found) != 1:
        raise RungError(f"there are {len(found)} file systems")
    return found[0]


def _gateways(walk: Walk) -> dict[str, int]:
    """Return the numbers of addresses of NAT gateways, by their ids."""
    deployment = walk.deployment
    ids = deployment.physical_ids(deployment.stack_name("network")).values()
    listed = deployment.account.list("ec2", "describe_nat_gateways")
    return {each["NatGatewayId"]: len(each["NatGatewayAddresses"]) for each in listed if each["NatGatewayId"] in ids}


def _status(walk: Walk) -> Mapping[str, Any]:
    answer: Mapping[str, Any] = walk.run("status", walk.name, "-o", "json", codes=None).json()
    return answer


def _is_healthy(walk: Walk) -> bool:
    return _status(walk).get("healthy") is True


def _software(walk: Walk) -> str:
    return str((_status(walk).get("software") or {}).get("state", ""))


def _state(walk: Walk, job: str) -> str:
    """Return the state of a job, such as R; empty: it has ended; `_UNKNOWN`: ask again.

    Slurm does not know a job any more `MinJobAge` after its end: https://slurm.schedmd.com/slurm.conf.html.
    """
    answer = walk.slurm(f"squeue --noheader --jobs={job} --format=%t 2>&1; echo rc=$?")
    text, _, code = answer.rpartition("rc=")
    if code == "0":
        return text.strip()
    return "" if code and "Invalid job id specified" in text else _UNKNOWN


def _number(text: str) -> str:
    """Return the number of a job that was submitted.

    Raises:
        RungError: It is none.
    """
    if not re.fullmatch(r"\d+", text):
        raise RungError(f"no job was submitted: {text or 'no answer'}")
    return text


def _restarts(walk: Walk, job: str) -> int:
    found = re.search(r"Restarts=(\d+)", walk.slurm(f"scontrol show job {job}"))
    return int(found[1]) if found else 0


def _checkpoints(walk: Walk, output: str) -> str:
    return walk.on_head_node(f"ls {output}/checkpoints").output.strip()


def _attempts(walk: Walk, output: str) -> list[int]:
    """Return the step that each start of a training run continued from; 0: from the beginning."""
    answer = _json(walk.on_head_node(f"cat {output}/run.json").output)
    return [int(each["resumed_step"]) for each in answer.get("attempts", [])]


class _Trained:
    """A training run that has ended, as its files on the head node have it, and how long its compile job ran."""

    def __init__(self, read: Ran, compiling: timedelta) -> None:
        self.compiling = compiling
        compile_part, _, rest = read.output.partition("=== train\n")
        train_part, _, metrics = rest.partition("=== metrics\n")
        self.compile_end = (compile_part.strip().splitlines() or ["no log"])[-1]
        self.end = (train_part.strip().splitlines() or ["no log"])[-1]
        self.is_compiled = "exit code 0" in self.compile_end
        self.is_done = "the program has ended well" in self.end
        self.metrics = list(_metrics(metrics))
        self.logs = [read.log]


def _submit_words(output: str, minutes: int) -> str:
    return f'python3 "$ULTRACLUSTER_JOBS/submit.py" --output {output} --time {minutes}'


def _train(walk: Walk, name: str, script: str, minutes: int) -> _Trained:
    """Submit a training run whose jobs end by themselves after some minutes, and wait for its end."""
    output = f"{walk.settings.storage.file_system.mount_dir}/runs/{name}"
    submitted = walk.on_head_node(script.format(_submit_words(output, minutes)), minutes=60)
    compiles, trains = (_job_of(submitted, kind) for kind in ("compile", "train"))
    walk.until(lambda: _state(walk, compiles) in ("R", ""), minutes=_WAIT)
    started = walk.clock.now()
    walk.until(lambda: not _state(walk, compiles), minutes=minutes)
    compiling = walk.clock.now() - started
    walk.until(lambda: not _state(walk, trains), minutes=2 * minutes)
    parts = ("cat {0}/compile-*.log", "echo === train", "cat {0}/train-*.log", "echo === metrics")
    return _Trained(walk.on_head_node("; ".join([*parts, "cat {0}/metrics.jsonl"]).format(output)), compiling)


def _json(text: str) -> Mapping[str, Any]:
    """Return the JSON that a text starts with; an empty object: it starts with none."""
    try:
        value, _ = json.JSONDecoder().raw_decode(text.lstrip())
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _job_of(submitted: Ran, kind: str) -> str:
    found = re.search(rf"^{kind} +job (\d+)", submitted.output, re.MULTILINE)
    if found is None:
        raise RungError(f"the training run was not submitted, {submitted.log}")
    return found[1]


def _metrics(text: str) -> Iterator[Mapping[str, Any]]:
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and "step" in value:
            yield value
