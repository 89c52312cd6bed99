"""What AWS's helper scripts for CloudFormation do on a head node: cfn-init, cfn-signal and cfn-hup.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cfn-helper-scripts-reference.html
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from emulator.machines.guest import aws, pace
from emulator.machines.guest.node import Node

_LOG: Final = Path("/var/log/cfn-init.log")
_HUP_LOG: Final = Path("/var/log/cfn-hup.log")
_KNOWN: Final = Path("/var/lib/cfn-hup/metadata.json")
log = logging.getLogger("cfn")


def described(stack: str, resource: str) -> dict[str, Any]:
    """Return the metadata of a resource of a stack.

    Raises:
        aws.AwsError: They cannot be read.
    """
    answer = aws.query("cloudformation", "DescribeStackResource", StackName=stack, LogicalResourceId=resource)
    metadata: dict[str, Any] = json.loads(answer.findtext(".//Metadata") or "{}")
    return metadata


def cfn_init(arguments: Sequence[str]) -> int:
    """Do what the metadata of a resource says; return the exit code."""
    parser = argparse.ArgumentParser("cfn-init")
    parser.add_argument("-s", "--stack")
    parser.add_argument("-r", "--resource")
    parser.add_argument("-c", "--configsets")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("--region")
    parser.add_argument("--url")
    asked = parser.parse_args(arguments)
    _log_to(_LOG)
    log.info("-----------------------Starting build-----------------------")
    try:
        metadata = described(asked.stack, asked.resource)
    except aws.AwsError as error:
        log.error("%s", error)
        return 1
    init = metadata["AWS::CloudFormation::Init"]
    log.info("Running configSets: %s", asked.configsets)
    for name in init["configSets"][asked.configsets]:
        log.info("Running config %s", name)
        if not _apply(init[name]):
            log.error("-----------------------BUILD FAILED!------------------------")
            print(f"Error occurred during build: Config {name} failed")
            return 1
    log.info("ConfigSets completed")
    log.info("-----------------------Build complete-----------------------")
    return 0


def _apply(config: dict[str, Any]) -> bool:
    for path, file in config.get("files", {}).items():
        content = file["content"]
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content if isinstance(content, str) else json.dumps(content, indent=4), encoding="utf-8")
        target.chmod(int(file["mode"], 8) & 0o777)
    commands = config.get("commands", {})
    for name in sorted(commands, key=lambda name: (not name.startswith("mkdir"), name)):
        command = commands[name]
        log.debug("Running command %s", name)
        done = subprocess.run(
            ["bash", "-c", command["command"]], cwd=command.get("cwd"), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
        )  # fmt: skip
        if done.returncode:
            log.error("Command %s (%s) failed", name, command["command"])
        else:
            log.info("Command %s succeeded", name)
        if done.stdout:
            log.debug("Command %s output: %s", name, done.stdout.rstrip())
        if done.returncode:
            return False
    return True


def cfn_signal(arguments: Sequence[str]) -> int:
    """Report to the URL of a wait condition; return the exit code."""
    parser = argparse.ArgumentParser("cfn-signal")
    parser.add_argument("--exit-code", type=int, default=0)
    parser.add_argument("--reason", default="")
    parser.add_argument("--region")
    parser.add_argument("--url")
    parser.add_argument("handle")
    asked = parser.parse_args(arguments)
    instance_id = aws.metadata("meta-data/instance-id")
    signal = {
        "Status": "FAILURE" if asked.exit_code else "SUCCESS",
        "Reason": asked.reason,
        "UniqueId": instance_id,
        "Data": asked.reason,
    }
    aws.put(asked.handle, json.dumps(signal).encode())
    return 0


def cfn_hup(_: Sequence[str]) -> int:
    """Follow the metadata of the head node's launch template, and run its update when they change."""
    _log_to(_HUP_LOG)
    node, seconds = Node.load(), pace.load().hup_seconds
    stack, resource = str(node.cluster["stack_name"]), str(node.cluster["launch_template_id"])
    if not _KNOWN.exists():
        remember(node)
    while True:
        time.sleep(seconds)
        try:
            now = described(stack, resource)
        except aws.AwsError as error:
            log.error("%s", error)
            continue
        if now != json.loads(_KNOWN.read_text(encoding="utf-8")):
            log.info("Data has changed from previous state; action for cfn-hook-update will be run")
            _KNOWN.write_text(json.dumps(now), encoding="utf-8")
            program = "/usr/local/sbin/cfn-init"
            done = subprocess.run([program, "-s", stack, "-v", "-c", "update", "-r", resource], check=False)
            log.info("action for cfn-hook-update ended with exit code %s", done.returncode)


def remember(node: Node) -> None:
    """Take the metadata as they are for known: only changes from now on are an update."""
    _KNOWN.parent.mkdir(parents=True, exist_ok=True)
    metadata = described(str(node.cluster["stack_name"]), str(node.cluster["launch_template_id"]))
    _KNOWN.write_text(json.dumps(metadata), encoding="utf-8")


def _log_to(path: Path) -> None:
    logging.basicConfig(
        level=logging.DEBUG, format="%(asctime)s [%(levelname)s] %(message)s",
        handlers=[logging.FileHandler(path), logging.StreamHandler(sys.stdout)],
    )  # fmt: skip
