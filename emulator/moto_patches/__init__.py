"""What moto 5.2.5 lacks, and what it lets pass that AWS refuses. Runs inside the server's process.

moto hands each service's requests to one response class; `fill` puts subclasses of some in their place, before
the server starts. A subclass has one method per API action, named in snake_case. What it has to remember it keeps among
the attributes of moto's own backend, so that a reset forgets it.

A resource whose id AWS chooses gets a chosen one from a tag `_custom_id_`, moto's name for this
(moto/utilities/id_generator.py), which its EC2 does not honour. So what a deployment expects has the ids that it names.
"""

from __future__ import annotations

from typing import Any

import moto.budgets.urls
import moto.ce.urls
import moto.cloudtrail.urls
import moto.cloudwatch.urls
import moto.ec2.models.instances
import moto.ec2.models.security_groups
import moto.ec2.urls
import moto.efs.urls
import moto.fsx.urls
import moto.kms.urls
import moto.logs.urls
import moto.rds.urls
import moto.resourcegroups.urls
import moto.s3.models
import moto.servicequotas.urls
import moto.ssm.urls
from moto.core.responses import BaseResponse

from emulator.keys import make_keys_unguessable
from emulator.moto_patches.access import (
    Kms,
    choose_arns,
    count_calls,
    name_service_roles,
    refuse_as_services_do,
)
from emulator.moto_patches.backup import add_backup_jobs
from emulator.moto_patches.budgets import Budgets
from emulator.moto_patches.costs import CostExplorer
from emulator.moto_patches.dlm import add_lifecycle_manager
from emulator.moto_patches.efs import Efs
from emulator.moto_patches.faults import Ec2, withhold_offerings
from emulator.moto_patches.fsx import Fsx
from emulator.moto_patches.instances import filter_offerings_by_wildcards, place_offerings_by_zone_id
from emulator.moto_patches.launches import complete_launches_of_groups
from emulator.moto_patches.lives import LivingInstance
from emulator.moto_patches.monitoring import CloudTrail, CloudWatch, Logs
from emulator.moto_patches.networks import NetworkInterface, Rule, find_black_holes
from emulator.moto_patches.pricing import add_price_list
from emulator.moto_patches.rds import Rds
from emulator.moto_patches.repetitions import avoid_repetitions
from emulator.moto_patches.requests import refuse_malformed_requests
from emulator.moto_patches.reservations import ResourceGroups
from emulator.moto_patches.s3 import Bucket, judge_signed_requests
from emulator.moto_patches.service_quotas import ServiceQuotas
from emulator.moto_patches.ssm import Ssm
from emulator.moto_patches.volumes import tell_of_volumes
from emulator.moto_patches.zones import choose_zone_ids


def fill() -> None:
    """Register what is in this package with moto; call it before the server starts."""
    services: list[tuple[Any, type[BaseResponse]]] = [
        (moto.budgets.urls, Budgets),
        (moto.ce.urls, CostExplorer),
        (moto.cloudtrail.urls, CloudTrail),
        (moto.cloudwatch.urls, CloudWatch),
        (moto.ec2.urls, Ec2),
        (moto.efs.urls, Efs),
        (moto.fsx.urls, Fsx),
        (moto.kms.urls, Kms),
        (moto.logs.urls, Logs),
        (moto.rds.urls, Rds),
        (moto.resourcegroups.urls, ResourceGroups),
        (moto.servicequotas.urls, ServiceQuotas),
        (moto.ssm.urls, Ssm),
    ]
    for urls, response in services:
        urls.url_paths = dict.fromkeys(urls.url_paths, response.dispatch)
    for action in ("group-resources", "list-group-resources"):
        moto.resourcegroups.urls.url_paths[f"{{0}}/{action}$"] = ResourceGroups.dispatch
    moto.ec2.models.instances.Instance = LivingInstance  # type: ignore[misc]
    moto.ec2.models.security_groups.SecurityGroupRule = Rule  # type: ignore[misc]
    moto.ec2.models.elastic_network_interfaces.NetworkInterface = NetworkInterface  # type: ignore[misc]
    moto.s3.models.FakeBucket = Bucket  # type: ignore[misc]
    # S3 delivers access logs hours later, if at all; moto at once, and a bucket that logs itself is never empty.
    moto.s3.models.S3Backend.log_incoming_request = lambda *_: None  # type: ignore[method-assign]
    make_keys_unguessable()
    refuse_as_services_do()
    refuse_malformed_requests()
    choose_arns()
    count_calls()
    place_offerings_by_zone_id()
    filter_offerings_by_wildcards()
    withhold_offerings()
    complete_launches_of_groups()
    avoid_repetitions()
    find_black_holes()
    judge_signed_requests()
    name_service_roles()
    add_lifecycle_manager()
    add_price_list()
    add_backup_jobs()
    tell_of_volumes()
    choose_zone_ids()
