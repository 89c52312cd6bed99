"""The settings of a deployment, and its AWS account."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from threading import Lock
from typing import Any

from config.settings import Settings
from scripts.account.stack_state import ResourceState, StackState
from scripts.core import interrupts, options
from scripts.core.aws_errors import if_found


def filters(wanted: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Return filters of EC2 or FSx: names, and the values of which what is described has one."""
    return [{"Name": name, "Values": [*values]} for name, values in wanted.items()]


def tags_of(described: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags of something, as a service describes it."""
    return {tag["Key"]: tag["Value"] for tag in described.get("Tags", [])}


def owner_words(interface: Mapping[str, Any]) -> set[str]:
    """Return the words by which AWS describes a network interface, as EC2 does; there is no field for whose it is.

    Among them is the id of the gateway, endpoint or file system that it is of, or ``net/NAME/ID`` of a load balancer,
    as its ARN ends.
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/requester-managed-eni.html,
    https://docs.aws.amazon.com/elasticloadbalancing/latest/network/network-load-balancers.html
    """
    return {*interface["Description"].split()}


class _Interruptible:
    """What each client of AWS does first: nothing is changed after a signal, and no change is cut off."""

    def _make_api_call(self, operation_name: str, api_params: Any) -> Any:
        with interrupts.changing(operation_name):
            return super()._make_api_call(operation_name, api_params)  # type: ignore[misc]


def session() -> Any:
    """Return a session of boto3 whose clients change nothing after a signal.

    https://boto3.amazonaws.com/v1/documentation/api/latest/guide/events.html
    """
    import boto3

    made = boto3.Session()
    made.events.register("creating-client-class", lambda base_classes, **_: base_classes.insert(0, _Interruptible))
    return made


SECONDS_FOR_AN_ANSWER = 10
"""How long to wait for an answer of AWS, before it is asked again."""


class Account:
    """AWS as the credentials in use see it. Every answer is fetched once and cached, until `forget`.

    All methods may be called from several threads and raise botocore's exceptions.
    """

    def __init__(self, region: str) -> None:
        self._region = region
        self._lock = Lock()
        self._session: Any = None
        self._clients: dict[tuple[str, str], Any] = {}
        self._answers: dict[Hashable, Future[Any]] = {}
        self._lasting: set[Hashable] = set()

    def client(self, service: str, region: str | None = None) -> Any:
        """Return a client of a service in the deployment's Region, or another."""
        from botocore.config import Config

        config = Config(
            retries={"mode": "adaptive", "total_max_attempts": 5},
            connect_timeout=3,
            read_timeout=SECONDS_FOR_AN_ANSWER,
            max_pool_connections=50,
        )
        key = (service, region or self._region)
        with self._lock:  # clients are thread-safe, sessions are not
            self._session = self._session or session()
            if key not in self._clients:
                self._clients[key] = self._session.client(service, region_name=key[1], config=config)
            return self._clients[key]

    def ask(self, service: str, operation: str, **parameters: Any) -> Any:
        """Return the answer of an operation, given by the name of its method in boto3."""
        return self._once(
            ("ask", service, operation, repr(parameters)),
            lambda: getattr(self.client(service), operation)(**parameters),
        )

    def find(self, service: str, operation: str, **parameters: Any) -> Any | None:
        """Return the same; None if AWS answers that its subject does not exist."""
        return if_found(lambda: self.ask(service, operation, **parameters))

    def list(
        self, service: str, operation: str, *, lasting: bool = False, region: str | None = None, **parameters: Any
    ) -> list[Any]:
        """Return what an operation lists, on all pages, in the deployment's Region, or another.

        With `lasting` the answer never changes, so that `forget` keeps it.
        """

        def pages() -> list[Any]:
            paginator = self.client(service, region).get_paginator(operation)
            [key] = paginator.paginate(**parameters).result_keys
            return [each for page in paginator.paginate(**parameters) for each in key.search(page) or []]

        key = ("list", service, operation, region, repr(parameters))
        listed: list[Any] = self._once(key, pages)
        if lasting:
            self._lasting.add(key)
        return listed

    def forget(self) -> None:
        """Fetch everything again from now on, but for what never changes."""
        with self._lock:
            self._answers = {key: each for key, each in self._answers.items() if key in self._lasting}

    def _once(self, key: Hashable, fetch: Callable[[], Any]) -> Any:
        with self._lock:
            future = self._answers.get(key)
            is_first = future is None
            if future is None:
                future = self._answers[key] = Future()
        if is_first:
            try:
                answer = fetch()
            except BaseException as error:
                if not isinstance(error, Exception):  # a signal says nothing about AWS
                    self._answers.pop(key, None)
                future.set_exception(error)
            else:
                future.set_result(answer)
        return future.result()


def described(account: Account, stack_name: str) -> dict[str, Any] | None:
    """Return a stack as CloudFormation describes it; None: it does not exist."""
    answer = account.find("cloudformation", "describe_stacks", StackName=stack_name) or {"Stacks": [None]}
    stack: dict[str, Any] | None = answer["Stacks"][0]
    return None if stack is None or StackState.of(stack).is_gone else stack


class Deployment:
    """A deployment: its settings, and its account.

    Attributes:
        name: Name of the settings file, without .yaml; its stacks start with `settings.name` instead.
        settings: What the file says.
        account: Its AWS account.
    """

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        self.settings = settings
        self.account = Account(settings.region)

    @property
    def file(self) -> str:
        """The settings file, as people know it."""
        return options.shown(options.settings_file(self.name))

    def of_generation(self, generation: int) -> Deployment:
        """Return the same deployment with another of its clusters; the account is shared."""
        other = Deployment(self.name, self.settings.of_generation(generation))
        other.account = self.account
        return other

    @property
    def system_user(self) -> str:
        """The user that nodes come with, such as ubuntu."""
        from ultracluster.domain import neuron

        return neuron.SYSTEMS[self.settings.cluster_spec.os].user

    def command(self, *words: str) -> str:
        """Return a command of the AWS CLI from the words after ``aws``, with the Region."""
        return shlex.join(["aws", *words, "--region", self.settings.region])

    def stack(self, name: str) -> dict[str, Any] | None:
        """Return a stack as CloudFormation describes it; None: it does not exist."""
        return described(self.account, name)

    def stacks(self) -> list[dict[str, Any]]:
        """Return all stacks of the Region, as CloudFormation describes them. A call for each page of 1 MB."""
        return self.account.list("cloudformation", "describe_stacks")

    def template(self, stack_name: str) -> dict[str, Any]:
        """Return the template of a stack, as it was given.

        Raises:
            botocore.exceptions.ClientError: It does not exist.
        """
        body: dict[str, Any] = self.account.ask("cloudformation", "get_template", StackName=stack_name)["TemplateBody"]
        return body

    def physical_ids(self, stack_name: str) -> dict[str, str]:
        """Return the physical ids of a stack's resources by logical id; none: the stack does not exist."""
        if self.stack(stack_name) is None:
            return {}
        listed = self.account.list("cloudformation", "list_stack_resources", StackName=stack_name)
        return {
            each["LogicalResourceId"]: each["PhysicalResourceId"]
            for each in listed
            if each.get("PhysicalResourceId") and not ResourceState(each["ResourceStatus"]).is_gone
        }

    def outputs(self, stack_name: str) -> dict[str, str]:
        """Return the outputs of a stack; none: it does not exist."""
        stack = self.stack(stack_name) or {}
        return {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", [])}

    def stack_name(self, part: str) -> str:
        """Return the name of a part's stack."""
        return self.settings.stack_name(part)

    def nodes(self) -> list[dict[str, Any]]:
        """Return the instances of this deployment's cluster that are not terminated, as EC2 describes them."""
        states = "pending", "running", "shutting-down", "stopping", "stopped"
        return self._instances({"tag:parallelcluster:cluster-name": [self.settings.cluster_spec.name]}, states)

    def own_instances(self) -> list[dict[str, Any]]:
        """Return the instances of this deployment's cluster that exist, as EC2 describes them."""
        return [each for each in self.instances() if self.is_tagged(each)]

    def other_instances(self) -> list[dict[str, Any]]:
        """Return the instances of the Region that are not this deployment's, as EC2 describes them."""
        return [each for each in self.instances() if not self.is_tagged(each)]

    def instances(self) -> list[dict[str, Any]]:
        """Return the instances of the Region that are pending or running, as EC2 describes them."""
        return self._instances({}, ("pending", "running"))

    def _instances(self, wanted: Mapping[str, Sequence[str]], states: Sequence[str]) -> list[dict[str, Any]]:
        narrow, pages = filters({**wanted, "instance-state-name": states}), {"PageSize": 1000}
        listed = self.account.list("ec2", "describe_instances", Filters=narrow, PaginationConfig=pages)
        return [instance for reservation in listed for instance in reservation["Instances"]]

    def is_tagged(self, described: Mapping[str, Any]) -> bool:
        """Tell whether something has the tag of this deployment's cluster, as a service describes it."""
        tag = {"Key": "parallelcluster:cluster-name", "Value": self.settings.cluster_spec.name}
        return tag in described.get("Tags", described.get("TagSet", []))
