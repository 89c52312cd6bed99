"""Auto Scaling groups whose lifecycle hooks hold back what they terminate, as those of ParallelCluster's login nodes.

https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks-overview.html
"""

from __future__ import annotations

import time
from typing import Any, Final, NamedTuple, cast

from moto.autoscaling.models import AutoScalingBackend, FakeAutoScalingGroup, InstanceState
from moto.elbv2.models import elbv2_backends

from emulator.aws import ACCOUNT

_TERMINATING: Final = "autoscaling:EC2_INSTANCE_TERMINATING"
_WAITING: Final = "Terminating:Wait"
FAST: Final = 1 / 90
"""Seconds that pass for one of a heartbeat at speed `fast`, which looks at nodes every second instead of every 90."""


class _Held(NamedTuple):
    until: float
    group: FakeAutoScalingGroup
    state: InstanceState


def hold_back_what_ends(share: float) -> None:
    """Let instances that a group has too many of run until the heartbeat of its hook ends, or a share of that time."""
    change = FakeAutoScalingGroup.set_desired_capacity
    delete = AutoScalingBackend.delete_auto_scaling_group

    def set_desired_capacity(self: FakeAutoScalingGroup, new_capacity: int | None) -> None:
        hooks = self.autoscaling_backend.describe_lifecycle_hooks(self.name)
        seconds = sum(each.heartbeat_timeout for each in hooks if each.lifecycle_transition == _TERMINATING)
        surplus = len(self.active_instances()) - int((self.min_size if new_capacity is None else new_capacity) or 0)
        for state in self.active_instances()[:surplus] if seconds and surplus > 0 else ():
            state.lifecycle_state = _WAITING
            _held(self.autoscaling_backend.ec2_backend).append(_Held(time.monotonic() + seconds * share, self, state))
        change(self, new_capacity)

    def delete_auto_scaling_group(self: AutoScalingBackend, group_name: str) -> None:
        """End lifecycle actions, too (DeleteAutoScalingGroup)."""
        for hook in self.describe_lifecycle_hooks(group_name):
            self.delete_lifecycle_hook(group_name, hook.name)
        held = _held(self.ec2_backend)
        held[:] = [each._replace(until=0) if each.group.name == group_name else each for each in held]
        end_what_is_due(self.ec2_backend)
        delete(self, group_name)

    FakeAutoScalingGroup.set_desired_capacity = set_desired_capacity  # type: ignore[method-assign]
    AutoScalingBackend.delete_auto_scaling_group = delete_auto_scaling_group  # type: ignore[method-assign]


def end_what_is_due(ec2: Any) -> None:
    """Terminate the instances whose time to wait is over."""
    held, now = _held(ec2), time.monotonic()
    for each in [each for each in held if each.until <= now]:
        held.remove(each)
        each.group.instance_states.remove(each.state)
        each.state.instance.terminate()
        elbv2_backends[ACCOUNT][each.group.region].notify_terminate_instances([each.state.instance_id])


def is_held(ec2: Any, instance_id: str) -> bool:
    """Return whether an instance waits for its end."""
    return any(each.state.instance_id == instance_id for each in _held(ec2))


def _held(ec2: Any) -> list[_Held]:
    return cast(list[_Held], vars(ec2).setdefault("held_back", []))
