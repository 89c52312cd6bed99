"""The instances of clusters, as machines: they start with the instance, answer as it does, and end with it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, Final, Protocol
from urllib.parse import urlsplit
from wsgiref.types import WSGIApplication

from moto.ec2.exceptions import EC2ClientError
from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import make_server

from emulator.clients import Clients, Endpoint
from emulator.clock import Speed
from emulator.faults import FAULTS_IN_FORCE
from emulator.machinery import Machinery
from emulator.machines import metadata, names
from emulator.machines.site import REBOOT_CODE, Machine, MachineSpec, Site
from emulator.machines.support import MachineError
from emulator.moto_patches import lives
from emulator.moto_patches.lives import InstanceListener, shut_down
from emulator.resources.model import NOT_EMULATED

TYPE_TAG: Final = "parallelcluster:node-type"
NAME_TAG: Final = "parallelcluster:cluster-name"
_KINDS: Final = ("HeadNode", "Compute", "LoginNode")
_ID_OF_STORAGE: Final = re.compile(r"(snap|vol|fs)-[a-z0-9-]+")
_LIVE: Final = ("pending", "running")
_SHUTDOWN_SECONDS: Final = 5.0
"""Until a machine that is stopped is switched off; EC2 waits for minutes."""
_ENVIRONMENT: Final = {
    "PATH": "/opt/slurm/bin:/opt/parallelcluster/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    # No key: that of its role a program asks the metadata service for, as on EC2. This computer may be slow to answer.
    "AWS_METADATA_SERVICE_TIMEOUT": "60",
    "AWS_METADATA_SERVICE_NUM_ATTEMPTS": "3",
}


@contextmanager
def _refused() -> Iterator[None]:
    """Let what this computer has no room for be refused as EC2 refuses what fails there."""
    try:
        yield
    except MachineError as error:
        raise EC2ClientError("InternalError", NOT_EMULATED.format(f"storage that has no room here: {error}")) from error


class _Server(Protocol):
    """What answers at a socket of a machine."""

    def shutdown(self) -> object:
        """Stop."""


@dataclass(frozen=True)
class _Running:
    region: str
    kind: str
    machine: Machine
    servers: tuple[_Server, ...]

    def stop(self, seconds: float = 0) -> None:
        self.machine.stop(seconds)
        for server in self.servers:
            server.shutdown()
        self.machine.close()


@dataclass
class _Cluster:
    """A cluster from its first node to its last, which share what the head node exports.

    Attributes:
        name: Of its exports: no other cluster has it, also of the same name.
        machines: Instances that have a machine, or a disk.
        has_ended: Whether its head node was terminated, whose root volume has what it exports.
    """

    name: str
    machines: set[str] = field(default_factory=set)
    has_ended: bool = False


class Fleet(InstanceListener):
    """All machines of one server.

    Attributes:
        application: What answers the calls of AWS's APIs.
    """

    application: WSGIApplication

    def __init__(
        self,
        machinery: Machinery,
        clients: Clients,
        endpoint: Endpoint,
        speed: Speed,
    ) -> None:
        """Take notice of what machines need; the first launch makes their site.

        Args:
            machinery: What they are made of.
            clients: Of the server, as a node calls it.
            endpoint: Where the server serves on this computer.
            speed: How long things take in them.
        """
        self._machinery = machinery
        self._clients = clients
        self._endpoint = endpoint
        self._pace = json.dumps({"speed": speed})
        self._site: Site | None = None
        self._running: dict[str, _Running] = {}
        self._starting: set[str] = set()
        self._ending: dict[str, threading.Thread] = {}
        self._printed: dict[str, str] = {}
        self._clusters: dict[tuple[str, str], _Cluster] = {}
        self._of_instance: dict[str, _Cluster] = {}
        self._heads: dict[str, tuple[str, str]] = {}
        self._numbers = count(1)
        self._lock = threading.Lock()

    def launched(self, region: str, instance_id: str, tags: Mapping[str, str]) -> None:
        """Start the machine of an instance; instances of no cluster have none."""
        kind, name = tags.get(TYPE_TAG), tags.get(NAME_TAG)
        if kind not in _KINDS or name is None:
            return
        with self._lock:
            new = _Cluster(str(next(self._numbers)))  # nothing of a name that anybody can choose: a path
            cluster = self._clusters.setdefault((region, name), new)
            cluster.machines.add(instance_id)
            self._of_instance[instance_id] = cluster
            if kind == "HeadNode":
                self._heads[instance_id] = (region, name)
        self.started(region, instance_id)

    def terminated(self, region: str, instance_id: str) -> None:
        """Shut the machine of an instance down, in a while, and delete its disk, a head node's with what it exports.

        Nodes that are left keep these as long as they run, as a client keeps what it has of a server that is gone.
        """
        del region
        with self._lock:
            ended = self._clusters.pop(self._heads.pop(instance_id, ("", "")), None)
            if ended:
                ended.has_ended = True
        self._shut_down(instance_id, discard=True)

    def stopped(self, region: str, instance_id: str) -> None:
        """Shut the machine of an instance down, in a while; its disk stays."""
        del region
        self._shut_down(instance_id)

    def rebooted(self, region: str, instance_id: str) -> None:
        """Shut the machine of an instance down, and start it again."""
        self.stopped(region, instance_id)
        self.started(region, instance_id)

    def saved(self, instance_id: str, snapshot_id: str) -> None:
        """Keep /home of a head node's root volume, at once."""
        if (found := self._disk(instance_id)) and instance_id in self._heads:
            with _refused():
                found[0].save(instance_id, found[1].name, snapshot_id)

    def attached(self, instance_id: str, volume_id: str, snapshot_id: str) -> None:
        """Let a machine have a volume."""
        if found := self._disk(instance_id):
            with _refused():
                found[0].attach(found[1].name, volume_id, snapshot_id)

    def detached(self, instance_id: str, volume_id: str) -> None:
        """Take a volume from a machine."""
        if found := self._disk(instance_id):
            found[0].detach(found[1].name, volume_id)

    def deleted(self, storage_id: str) -> None:
        """Delete what a snapshot, a volume or a file system had, in a while."""
        with self._lock:
            site = self._site
        if site and _ID_OF_STORAGE.fullmatch(storage_id):  # those who make one can choose it: a path
            threading.Thread(target=site.erase, args=(storage_id,), daemon=True).start()

    def _disk(self, instance_id: str) -> tuple[Site, _Cluster] | None:
        """Return where the disk of an instance is, and its cluster; None: it has none."""
        with self._lock:
            cluster = self._of_instance.get(instance_id)
            has_disk = self._site and cluster and instance_id in cluster.machines
            return (self._site, cluster) if self._site and cluster and has_disk else None

    def started(self, region: str, instance_id: str) -> None:
        """Start the machine of an instance, in a while; nothing happens if that was terminated meanwhile."""
        threading.Thread(target=self._start, args=(region, instance_id), daemon=True).start()

    def shell(self, instance_id: str) -> list[str] | None:
        """Return the beginning of what runs a command on the machine of an instance, as root; None: there is none."""
        with self._lock:
            running = self._running.get(instance_id)
        return running.machine.command() if running else None

    def nodes(self, kind: str) -> dict[str, str]:
        """Return the Region of each instance of a kind of node that runs, oldest first."""
        with self._lock:
            return {name: running.region for name, running in self._running.items() if running.kind == kind}

    def console(self, instance_id: str) -> str:
        """Return what the machine of an instance prints on its console, or printed last; empty: there was none."""
        with self._lock:
            running = self._running.get(instance_id)
            return running.machine.console if running else self._printed.get(instance_id, "")

    def place(self) -> Site:
        """Return the place of all machines."""
        with self._lock:
            return self._place()

    def network(self, region: str, vpc_id: str) -> str:
        """Return the CIDR of a VPC."""
        return str(self._clients("ec2", region).describe_vpcs(VpcIds=[vpc_id])["Vpcs"][0]["CidrBlock"])

    def reset(self) -> None:
        """End all machines, and their place with them."""
        with self._lock:
            self._running = {}
            for known in self._clusters, self._of_instance, self._heads:
                known.clear()
            site, self._site = self._site, None
        if site:
            site.stop()

    def _shut_down(self, instance_id: str, *, discard: bool = False) -> None:
        """Shut a machine down after what ends it already, in a thread for which its next start waits."""
        running = self._remove(instance_id)
        with self._lock:
            before = self._ending.get(instance_id)
            thread = threading.Thread(target=self._end, args=(instance_id, running, before, discard), daemon=True)
            self._ending[instance_id] = thread
            thread.start()

    def _end(self, instance_id: str, running: _Running | None, before: threading.Thread | None, discard: bool) -> None:
        if before:
            before.join()
        try:
            if running:
                running.stop(_SHUTDOWN_SECONDS)
            with self._lock:
                site = self._site
            if site and discard:
                site.discard(instance_id)
        finally:
            if discard:
                self._leave(instance_id)

    def _leave(self, instance_id: str) -> None:
        """Take an instance from its cluster; the last one takes what the cluster exported with it."""
        with self._lock:
            site, cluster = self._site, self._of_instance.get(instance_id)
            if cluster is None:
                return
            cluster.machines.discard(instance_id)
            is_over = cluster.has_ended and not cluster.machines
        if site and is_over:
            site.forget(cluster.name)

    def _start(self, region: str, instance_id: str) -> None:
        with self._lock:
            before, cluster = self._ending.get(instance_id), self._of_instance.get(instance_id)
        if before:
            before.join()
        if cluster is None or instance_id not in cluster.machines:  # it was terminated meanwhile
            return
        instance = self._described(region, instance_id)
        tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])}
        spec = MachineSpec(
            instance_id=instance_id,
            address=instance["PrivateIpAddress"],
            network=self.network(region, instance["VpcId"]),
            cluster=cluster.name,
            environment={
                **_ENVIRONMENT,
                "AWS_ENDPOINT_URL": self._endpoint.url,
                "AWS_REGION": region,
                "AWS_DEFAULT_REGION": region,
                **({"EMULATOR_TRAINING": str(self._machinery.borrowed[0])} if self._machinery.borrowed else {}),
            },
            pace=self._pace,
            borrowed=self._machinery.borrowed,
            before=FAULTS_IN_FORCE.at_boot(tags[TYPE_TAG]),
        )
        with self._lock:
            if instance["State"]["Name"] not in _LIVE or instance_id in self._running.keys() | self._starting:
                return
            self._starting.add(instance_id)
            site = self._place()
        try:
            machine = site.start(spec, partial(self._ended, region, instance_id))
        except MachineError as error:
            with self._lock:
                self._starting.remove(instance_id)
                self._printed[instance_id] = str(error)
            lives.fail(region, instance_id, str(error))
            return
        servers = self._serve(region, instance["VpcId"], machine)
        with self._lock:
            self._starting.remove(instance_id)
            self._running[instance_id] = _Running(region, tags[TYPE_TAG], machine, servers)
        # It may have ended, or been stopped or terminated, before the machine was there to be ended.
        if (code := machine.code) is not None:
            self._ended(region, instance_id, code)
        elif (state := self._described(region, instance_id)["State"]["Name"]) not in _LIVE:
            (self.stopped if state.startswith("stop") else self.terminated)(region, instance_id)

    def _described(self, region: str, instance_id: str) -> dict[str, Any]:
        described = self._clients("ec2", region).describe_instances(InstanceIds=[instance_id])
        return dict(described["Reservations"][0]["Instances"][0])

    def _remove(self, instance_id: str) -> _Running | None:
        """Return a machine that is to stop, and keep what it has printed; None: there is none."""
        with self._lock:
            running = self._running.pop(instance_id, None)
            if running:
                self._printed[instance_id] = running.machine.console
        return running

    def _place(self) -> Site:
        if self._site is None:
            port = urlsplit(self._endpoint.url).port
            assert port  # noqa: S101 - the server has one
            self._site = Site(self._machinery.image, port, self._machinery.borrowed)
        return self._site

    def _serve(self, region: str, vpc_id: str, machine: Machine) -> tuple[_Server, ...]:
        """Answer a machine at its sockets."""
        listeners, instance_id = machine.listeners, machine.spec.instance_id
        host, port = listeners.endpoint.getsockname()
        endpoint = make_server(
            host, port, self.application, threaded=True, request_handler=MotoRequestHandler,
            fd=listeners.endpoint.fileno(),
        )  # fmt: skip
        threading.Thread(target=endpoint.serve_forever, daemon=True).start()
        return (
            endpoint,
            metadata.serve(listeners.metadata, region, instance_id),
            names.serve(listeners.names, region, vpc_id),
        )

    def _ended(self, region: str, instance_id: str, code: int) -> None:
        """Take notice that a machine has ended by itself: it boots again, or has shut down."""
        running = self._remove(instance_id)
        if running is None:
            return
        running.stop()
        if code == REBOOT_CODE:
            self.started(region, instance_id)
        else:
            shut_down(region, instance_id)
