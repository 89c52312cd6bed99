"""The life of EC2 instances: what starts, stops and ends them, how healthy they are, and who is told."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, cast
from uuid import uuid4

from moto.autoscaling.models import autoscaling_backends
from moto.core.responses import ActionResult
from moto.core.types import Base64EncodedString
from moto.core.utils import utcnow
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import ec2_backends
from moto.ec2.models.instances import Instance, InstanceState, StateReason
from moto.ec2.responses import EC2Response
from moto.elbv2.models import elbv2_backends

from emulator.aws import ACCOUNT
from emulator.faults import FAULTS_IN_FORCE

CHECKS: Final = ("instance", "system")
"""What EC2 checks of a running instance: whether it can be reached, and what it runs on."""

EVENT_CODES: Final = ("instance-reboot", "instance-retirement", "instance-stop", "system-maintenance", "system-reboot")
"""Codes of scheduled events. https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceStatusEvent.html"""

_COMPUTE = ("parallelcluster:node-type", "Compute")
_CONSOLE_BYTES = 64 * 1024
_STOPPABLE = ("pending", "running", "stopping", "stopped")
_STARTABLE = ("pending", "running", "stopped")


class InstanceListener:
    """Who is told of the lives of all instances, and has their consoles: a subclass overrides what it needs.

    Each call is to be quick.
    """

    def launched(self, region: str, instance_id: str, tags: Mapping[str, str]) -> None:
        """Take notice of a new instance, by whatever API it was launched."""

    def stopped(self, region: str, instance_id: str) -> None:
        """Take notice of an instance that was stopped; its volumes are kept."""

    def started(self, region: str, instance_id: str) -> None:
        """Take notice of a stopped instance that was started."""

    def rebooted(self, region: str, instance_id: str) -> None:
        """Take notice of a running instance that is to reboot."""

    def terminated(self, region: str, instance_id: str) -> None:
        """Take notice of an instance that was terminated, once."""

    def saved(self, instance_id: str, snapshot_id: str) -> None:
        """Take notice of a snapshot of an instance's root volume."""

    def attached(self, instance_id: str, volume_id: str, snapshot_id: str) -> None:
        """Take notice of a volume that was made of a snapshot, and attached to an instance."""

    def detached(self, instance_id: str, volume_id: str) -> None:
        """Take notice of a volume that was detached from an instance."""

    def deleted(self, storage_id: str) -> None:
        """Take notice of a snapshot, a volume or a file system that was deleted."""

    def console(self, instance_id: str) -> str:
        """Return what an instance has printed on its console, also after its end; empty: it has none."""
        del instance_id
        return ""


LISTENERS: list[InstanceListener] = []


class LivingInstance(Instance):
    """An instance whose life its listeners follow, and whose status checks can fail.

    Attributes:
        capacity_reservation_id: The reservation that it uses; None: on-demand capacity.
        impaired_since: Since when each of `CHECKS` that fails does.
        events: The scheduled events, as DescribeInstanceStatus has them.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.capacity_reservation_id: str | None = None
        self.impaired_since: dict[str, datetime] = {}
        self.events: list[dict[str, Any]] = []
        self._is_announced = False
        super().__init__(*arguments, **options)

    def announce(self) -> None:
        """Tell the listeners that it was launched; before that they hear nothing of it."""
        self._is_announced = True
        tags = {tag["key"]: tag["value"] for tag in self.get_tags()}
        self._tell(lambda listener: listener.launched(self.region_name, self.id, tags))

    def stop(self) -> InstanceState:
        was_running = self.is_running()
        previous = super().stop()
        if was_running:
            self._tell(lambda listener: listener.stopped(self.region_name, self.id))
        return previous

    def start(self) -> InstanceState:
        was_running = self.is_running()
        previous = super().start()
        if not was_running:
            self.impaired_since.clear()  # it starts on another host
            self._tell(lambda listener: listener.started(self.region_name, self.id))
        return previous

    def reboot(self) -> None:
        """Reboot it if it runs: "Requests to reboot terminated instances are ignored" (RebootInstances)."""
        if self.is_running():
            self.impaired_since.pop("instance", None)
            self._tell(lambda listener: listener.rebooted(self.region_name, self.id))

    def terminate(self) -> InstanceState:
        """Terminate it, once: moto would delete the interfaces again. Those that outlive it are free for others."""
        if self.state in ("shutting-down", "terminated"):
            return self._state
        previous = super().terminate()
        for interface in self.network_interfaces:
            if not interface.delete_on_termination:
                interface.instance = interface.attachment_id = interface.public_ip = None
                interface.status = "available"
        if "stopping" in FAULTS_IN_FORCE and _COMPUTE in ((tag["key"], tag["value"]) for tag in self.get_tags()):
            self._state.name, self._state.code = "shutting-down", 32
            shutting_down(self.ec2_backend).append(self)
        self._tell(lambda listener: listener.terminated(self.region_name, self.id))
        return previous

    def shut_down(self) -> None:
        """Stop or terminate it, as its attribute says what a shutdown from inside does.

        https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/terminating-instances.html#Using_ChangingInstanceInitiatedShutdownBehavior
        """
        if self.instance_initiated_shutdown_behavior == "terminate":
            self.terminate()
        else:
            self.stop()
        code = "Client.InstanceInitiatedShutdown"
        self._reason, self.state_reason = "", StateReason(f"{code}: Instance initiated shutdown", code)

    def console(self) -> str:
        """Return what it has printed on its console."""
        return "".join(listener.console(self.id) for listener in LISTENERS)

    @property
    def instance_id(self) -> str:
        """Return its id, under the name by which DescribeInstanceStatus looks for it."""
        return self.id

    @property
    def instance_status(self) -> dict[str, Any]:
        return self._status("instance")

    @property
    def system_status(self) -> dict[str, Any]:
        return self._status("system")

    def _status(self, check: str) -> dict[str, Any]:
        if not self.is_running():
            return {"Status": "not-applicable"}
        since = self.impaired_since.get(check)
        detail = {"Name": "reachability", "Status": "failed" if since else "passed", "ImpairedSince": since}
        return {"Status": "impaired" if since else "ok", "Details": [detail]}

    def _tell(self, news: Callable[[InstanceListener], None]) -> None:
        if self._is_announced:
            for listener in LISTENERS:
                news(listener)


def shutting_down(ec2: Any) -> list[Instance]:
    """Return the instances that are kept from being terminated."""
    held: list[Instance] = vars(ec2).setdefault("shutting_down", [])
    return held


def shut_down(region: str, instance_id: str) -> None:
    """Let an instance be shut down from inside, as by ``shutdown -h``; nothing happens if it does not run.

    Raises:
        EC2ClientError: There is no such instance.
    """
    instance = cast(LivingInstance, ec2_backends[ACCOUNT][region].get_instance(instance_id))
    if instance.is_running():
        instance.shut_down()
        if instance.state != "stopped":
            _leave_groups(region, instance_id)


def _leave_groups(region: str, instance_id: str) -> None:
    """Let an instance that was terminated be no target any more, and be replaced by its Auto Scaling group."""
    autoscaling_backends[ACCOUNT][region].notify_terminate_instances([instance_id])
    elbv2_backends[ACCOUNT][region].notify_terminate_instances([instance_id])


def fail(region: str, instance_id: str, message: str) -> None:
    """Terminate an instance that cannot be launched.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/troubleshooting-launch.html#troubleshooting-launch-internal
    """
    instance = cast(LivingInstance, ec2_backends[ACCOUNT][region].get_instance(instance_id))
    instance.terminate()
    code = "Server.InternalError"
    instance._reason, instance.state_reason = "", StateReason(f"{code}: {message}", code)


def afflict(region: str, instance_id: str, event: str) -> None:
    """Let something happen to a running instance.

    Args:
        region: Its AWS Region.
        instance_id: Its id.
        event: ``shutdown`` from inside, ``impaired:instance`` or ``impaired:system`` since now,
            ``impaired:system:600`` since so many seconds, ``ok`` for the end of that, ``reboot``, ``retire``, which
            stops it as its hardware is retired, ``terminate``, or one of `EVENT_CODES`.

    Raises:
        ValueError: There is no such event.
        EC2ClientError: There is no such instance.
    """
    instance = cast(LivingInstance, ec2_backends[ACCOUNT][region].get_instance(instance_id))
    what, _, details = event.partition(":")
    check, _, seconds = details.partition(":")
    if event == "shutdown":
        shut_down(region, instance_id)
    elif event == "ok":
        instance.impaired_since.clear()
        instance.events.clear()
    elif what == "impaired" and check in CHECKS:
        instance.impaired_since[check] = utcnow() - timedelta(seconds=float(seconds or 0))
    elif event == "reboot":
        instance.reboot()
    elif event == "retire":
        instance.stop()
        code = "Server.ScheduledStop"
        instance.state_reason = StateReason(f"{code}: The instance was stopped due to a scheduled retirement.", code)
    elif event == "terminate":
        instance.terminate()
        _leave_groups(region, instance_id)
    elif event in EVENT_CODES:
        start = utcnow() + timedelta(days=1)
        description = "The instance is running on degraded hardware"
        instance.events.append(
            {
                "InstanceEventId": f"instance-event-{uuid4().hex[:17]}",
                "Code": event,
                "Description": description,
                "NotBefore": start,
                "NotAfter": start + timedelta(hours=2),
            }
        )
    else:
        allowed = "shutdown, ok, reboot, retire, start, impaired:instance[:SECONDS], impaired:system[:SECONDS]"
        raise ValueError(f"event of an instance: got {event}; allowed: {allowed}, {', '.join(EVENT_CODES)}")


class Lives(EC2Response):
    """EC2 that starts and stops only what can be, and tells how instances are."""

    def start_instances(self) -> ActionResult:
        self._check_states(_STARTABLE, "started")
        return super().start_instances()

    def stop_instances(self) -> ActionResult:
        self._check_states(_STOPPABLE, "stopped")
        return super().stop_instances()

    def terminate_instances(self) -> ActionResult:
        """Let those that are terminated already be so in the answer; moto says that they shut down."""
        answer = super().terminate_instances()
        for change in cast(dict[str, Any], answer.result)["TerminatingInstances"]:
            if change["PreviousState"].name == "terminated":
                change["CurrentState"] = change["PreviousState"]
        return answer

    def describe_instance_status(self) -> ActionResult:
        filters = self._filters_from_querystring()
        everything = self._get_bool_param("IncludeAllInstances", False)
        if unknown := [name for name in filters if name not in _STATUS_FILTERS]:
            raise EC2ClientError("InvalidParameterValue", f"The filter '{unknown[0]}' is invalid")
        instances = self.ec2_backend.describe_instance_status(self._get_param("InstanceIds", []), everything, None)
        statuses = [
            each
            for each in instances
            if all(_STATUS_FILTERS[name](each) & set(values) for name, values in filters.items())
        ]
        return ActionResult({"InstanceStatuses": statuses})

    def get_console_output(self) -> ActionResult:
        """Answer with what the console shows by now, with `Latest` and without.

        Without it EC2 answers with what was there shortly after the last change of the instance's state.
        https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_GetConsoleOutput.html
        """
        instance = cast(LivingInstance, self.ec2_backend.get_instance(self._get_param("InstanceId")))
        answer = {"InstanceId": instance.id, "Timestamp": utcnow()}
        if text := instance.console():
            last = text.encode()[-_CONSOLE_BYTES:].decode(errors="ignore")
            answer["Output"] = Base64EncodedString.from_raw_string(last)
        return ActionResult(answer)

    def _check_states(self, states: tuple[str, ...], participle: str) -> None:
        for instance in self.ec2_backend.get_multi_instances_by_id(self._get_param("InstanceIds")):
            if instance.state not in states:
                raise EC2ClientError(
                    "IncorrectInstanceState",
                    f"The instance '{instance.id}' is not in a state from which it can be {participle}.",
                )


def _reachability(status: Mapping[str, Any]) -> set[str]:
    return {detail["Status"] for detail in status.get("Details", [])}


_STATUS_FILTERS: Final[Mapping[str, Callable[[LivingInstance], set[str]]]] = {
    "availability-zone": lambda each: {str(each.availability_zone)},
    "event.code": lambda each: {event["Code"] for event in each.events},
    "event.instance-event-id": lambda each: {event["InstanceEventId"] for event in each.events},
    "instance-state-code": lambda each: {str(each.state_code)},
    "instance-state-name": lambda each: {each.state},
    "instance-status.reachability": lambda each: _reachability(each.instance_status),
    "instance-status.status": lambda each: {each.instance_status["Status"]},
    "system-status.reachability": lambda each: _reachability(each.system_status),
    "system-status.status": lambda each: {each.system_status["Status"]},
}
"""What each filter of DescribeInstanceStatus compares; those of other kinds of events are left out.

https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceStatus.html
"""
