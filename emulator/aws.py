"""The emulated AWS, as the process that starts it sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

import boto3

from emulator.machinery import Machinery
from toolchain.assembly import EXAMPLE_ACCOUNT

SECRET = "testing"  # noqa: S105 - no signature is checked: the access key is the secret
"""What tools sign with."""

ACCOUNT = EXAMPLE_ACCOUNT
"""The account that every credential belongs to, and the value of AWS::AccountId."""


class EmulatedAws:
    """A running server. It ends with `stop`, with the `with` block, or with the process that started it.

    Stacks come up as fast as they can, or at speed `real` in about the time that AWS takes.

    Attributes:
        port: Where it serves, on this computer's loopback interface.
        key: The access key that everything in it is open to, and nothing without one: a secret.
    """

    port: str
    key: str

    def __init__(
        self,
        speed: Literal["fast", "real"] = "fast",
        life: int = subprocess.PIPE,
        machinery: Machinery | None = None,
    ) -> None:
        """Start a server that ends with the file `life`, by default a pipe that this process holds.

        With `machinery` the instances of clusters are machines, with the real Slurm; without it, nothing runs on them.
        """
        own = {
            "MOTO_ACCOUNT_ID": ACCOUNT,
            "MOTO_DISABLE_GLOBAL_CORS": "true",  # no web page may read an answer
            "MOTO_EC2_LOAD_DEFAULT_AMIS": "false",  # prerequisites declares the images that matter
            "MOTO_IAM_LOAD_MANAGED_POLICIES": "true",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "emulator.server", speed, *((machinery.as_text(),) if machinery else ())],
            stdin=life,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
            env={**_without_aws(os.environ), **own},
            start_new_session=True,  # Ctrl-C is for the starter, who may still need the server to clean up
        )
        assert self._process.stdout is not None  # noqa: S101 - stdout=PIPE
        port, _, key = self._process.stdout.readline().strip().partition(" ")
        if not key:
            self._process.wait()
            raise RuntimeError(f"the emulated AWS did not start (exit code {self._process.returncode})")
        self._connect(port, key)

    def _connect(self, port: str, key: str) -> None:
        self.port, self.key = port, key
        # An IP address, not a name: botocore then addresses buckets by path.
        self.endpoint = f"http://127.0.0.1:{port}"
        self._session = boto3.Session(key, SECRET)
        self._clients: dict[tuple[str, str], Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def environment(self) -> dict[str, str]:
        """Return this process's environment with every AWS setting replaced by those that lead to this server."""
        return {**_without_aws(os.environ), **self.settings}

    @property
    def settings(self) -> dict[str, str]:
        """Return the environment variables that lead AWS's tools to this server."""
        return settings_for(self.endpoint, self.key)

    @property
    def settings_of_user(self) -> dict[str, str]:
        """Return those of somebody whose calls are counted, unlike this process's own."""
        return settings_for(self.endpoint, f"{self.key}user")

    def clone(self) -> EmulatedAws:
        """Return a server of its own with all that this one holds; what changes in either is not seen in the other.

        A clone takes a moment where a deployment takes half a minute. It ends with `stop`, with the `with` block, or
        with this server.

        Raises:
            urllib.error.HTTPError: Something is in progress for half a minute, such as an operation of CloudFormation.
        """
        return _Clone(self)

    def client(self, service: str, region: str) -> Any:
        """Return a boto3 client of this server, the same one each time."""
        if (service, region) not in self._clients:
            self._clients[service, region] = self._session.client(service, region, endpoint_url=self.endpoint)
        return self._clients[service, region]

    def inject(self, fault: str, target: str = "") -> str:
        """Put one of `emulator.faults.FAULTS` in force, instead of any before.

        Returns:
            The instance that a fault of a node concerns; else nothing.

        Raises:
            urllib.error.HTTPError: It has no such target, or no such node runs.
        """
        return self._post(f"/emulator/faults?{urllib.parse.urlencode({fault: target})}").decode()

    def clear_faults(self) -> None:
        """Remove all faults; nodes that still run are as before."""
        self._post("/emulator/faults")

    def afflict(self, region: str, instance_id: str, event: str) -> None:
        """Let something happen to an instance; `emulator.moto_patches.lives.afflict` says what can.

        Raises:
            urllib.error.HTTPError: There is no such instance or event.
        """
        query = urllib.parse.urlencode({"region": region, "instance": instance_id, "event": event})
        self._post(f"/emulator/instances?{query}")

    def expire(self, role_arn: str) -> None:
        """Let the time of a role's sessions be over now.

        Raises:
            urllib.error.HTTPError: It has none.
        """
        self._post(f"/emulator/expire?{urllib.parse.quote(role_arn, safe='')}")

    def set_shell(self, program: str) -> None:
        """Have a program, bash text, run every command that Systems Manager sends to a node; empty: none answers."""
        self._post("/emulator/shell", program.encode())

    def calls(self) -> list[str]:
        """Return the calls since the last time, such as ``ec2:DescribeInstances``, but for the emulator's own."""
        calls: list[str] = json.loads(self._post("/emulator/calls"))
        return calls

    @contextmanager
    def restricted(self, policy: Mapping[str, Any]) -> Iterator[dict[str, str]]:
        """Make an IAM user with the rights of one policy and no others, and yield that user's environment variables.

        Meanwhile IAM looks at every call but those of `judged`. emulator/README.md, "Who may do what", has the
        resources and conditions that it knows: what the policy says of others holds for all.
        """
        iam = self.client("iam", "us-east-1")
        name = f"restricted-{uuid.uuid4()}"
        iam.create_user(UserName=name)
        iam.put_user_policy(UserName=name, PolicyName=name, PolicyDocument=json.dumps(policy))
        key = iam.create_access_key(UserName=name)["AccessKey"]
        own = {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
        with self.judged():
            yield {**self.settings, **own}

    @contextmanager
    def in_role(self, role_arn: str) -> Iterator[dict[str, str]]:
        """Yield the environment variables of whoever has the credentials of a role, such as a job on a node.

        Whom the role trusts is not looked at. All else is as with `restricted`.
        """
        sts = self.client("sts", "us-east-1")
        answer = sts.assume_role(RoleArn=role_arn, RoleSessionName="i-0123456789abcdef0")
        with self.judged():
            yield {**self.settings, **of_session(answer["Credentials"])}

    @contextmanager
    def judged(self) -> Iterator[None]:
        """Let IAM look at calls until the block ends, but not those of owner, nodes, functions and CloudFormation.

        Functions have the owner's key, whatever their roles.
        """
        before = self._set_unchecked_calls("0")
        try:
            yield
        finally:
            self._set_unchecked_calls(before)

    def reset(self) -> None:
        """Forget every resource, all faults and all restrictions."""
        self._set_unchecked_calls("inf")
        self._post("/moto-api/reset")

    def wait(self) -> int:
        """Wait until the server has ended by itself, and return its exit code; below 0: the signal that killed it."""
        return self._process.wait()

    def stop(self) -> None:
        """End the server and wait until it is gone."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()

    def _set_unchecked_calls(self, number: str) -> str:
        """Let IAM look at every call after so many, and return after how many it did.

        https://docs.getmoto.org/en/latest/docs/iam.html
        """
        answer = json.loads(self._post("/moto-api/reset-auth", number.encode()))
        return str(answer["PREVIOUS_INITIAL_NO_AUTH_ACTION_COUNT"])

    def _post(self, path: str, body: bytes = b"") -> bytes:
        headers = {
            "Content-Type": "text/plain",  # a form's body would not reach moto's handler
            "Authorization": f"AWS4-HMAC-SHA256 Credential={self.key}/20000101/us-east-1/emulator/aws4_request",
        }
        request = urllib.request.Request(f"{self.endpoint}{path}", body, headers, method="POST")  # noqa: S310 - own server
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            content: bytes = answer.read()
        return content


class JoinedAws(EmulatedAws):
    """A server that another process started: stopping it is not this one's business."""

    def __init__(self, port: str, key: str) -> None:
        self._connect(port, key)

    def stop(self) -> None:
        """Leave the server running."""


class _Clone(EmulatedAws):
    def __init__(self, origin: EmulatedAws) -> None:
        self._origin = origin
        self._connect(origin._post("/emulator/clone").decode(), origin.key)

    def stop(self) -> None:
        """End the clone and wait until it is gone."""
        self._origin._post("/emulator/end-clone", self.port.encode())


def settings_for(endpoint: str, key: str) -> dict[str, str]:
    """Return the environment variables that lead AWS's tools to a server."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


def of_session(credentials: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of credentials that STS has given out."""
    return {
        "AWS_ACCESS_KEY_ID": credentials["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": credentials["SecretAccessKey"],
        "AWS_SESSION_TOKEN": credentials["SessionToken"],
    }


def _without_aws(environment: os._Environ[str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith("AWS_")}
