"""A plugin of pytest for the tests of others: each gets an empty account, and what it was answered is written down.

It runs in .venv-recordings, where nothing of this project is. RECORDINGS_RESULTS names the file for the results, a line
of JSON for each test; AWS_ENDPOINT_URL and the key lead to the emulated AWS.
"""

from __future__ import annotations
import __future__

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import re
import signal
import sys
import time
import urllib.request
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest
import typing_extensions

MARKERS = {"localstack": "aws_validated", "moto": "aws_verified"}
"""How each repository marks a test that passed on AWS."""

_LONGEST_SLEEP = 0.1
"""Seconds. Tests wait for AWS, which takes minutes; the emulated one has done most of it when it answers."""
_LIMIT = 300
"""Seconds after which a test is given up: no test that passes takes a tenth of it."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SHOWN = 1_500
"""Characters of a failure that are kept: its end."""


class OutsideError(OSError):
    """A test wanted to reach something that is not on this computer."""


class _Notes:
    """What one test was told by the emulated AWS."""

    def __init__(self) -> None:
        self.answers: list[str] = []
        self.stacks: set[tuple[str, str]] = set()
        self.outside: list[str] = []


_notes = _Notes()


# Python 3.11 does not know type parameters, which LocalStack has at a handful of places.

_PARAMETERS = re.compile(r"^(\s*(?:async def|def|class) \w+)\[[^\n]*?\](?=[(:])", re.MULTILINE)
_ALIAS = re.compile(r"^type (?=\w+ = )", re.MULTILINE)


class _Loader(importlib.machinery.SourceFileLoader):
    def source_to_code(self, data: Any, path: Any, **_: Any) -> CodeType:  # type: ignore[override]
        text = _ALIAS.sub("", _PARAMETERS.sub(r"\1", bytes(data).decode()))
        code: CodeType = compile(text, path, "exec", __future__.annotations.compiler_flag, dont_inherit=True)
        return code

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in ("localstack", "tests", "conftest"):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            return None
        text = Path(spec.origin).read_text(encoding="utf-8")
        if not (_PARAMETERS.search(text) or _ALIAS.search(text)):
            return None
        loader = _Loader(fullname, spec.origin)
        return importlib.util.spec_from_file_location(
            fullname, spec.origin, loader=loader, submodule_search_locations=spec.submodule_search_locations
        )


if sys.version_info < (3, 12):
    sys.meta_path.insert(0, _Finder())
if sys.version_info < (3, 13):
    warnings.__dict__["deprecated"] = typing_extensions.deprecated


# What a test is told


def _watch_calls() -> None:
    """Keep what the clients of all sessions are answered: errors, and the stacks that they ask for."""
    from botocore.client import BaseClient
    from botocore.exceptions import ClientError

    call = BaseClient._make_api_call

    def watched(client: Any, operation: str, parameters: Any) -> Any:
        try:
            answer = call(client, operation, parameters)
        except ClientError as error:
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            told = error.response.get("Error", {})
            _notes.answers.append(f"{operation}: {status} {told.get('Code')}: {told.get('Message')}")
            raise
        if client.meta.service_model.service_name == "cloudformation" and isinstance(answer.get("StackId"), str):
            _notes.stacks.add((client.meta.region_name, answer["StackId"]))
        return answer

    BaseClient._make_api_call = watched


def _reasons() -> Iterator[str]:
    """Yield why the stacks of a test, and what is in them, did not come to be."""
    import boto3

    for region, stack_id in sorted(_notes.stacks):
        client = boto3.client("cloudformation", region)
        try:
            events = client.describe_stack_events(StackName=stack_id)["StackEvents"]
            sets = client.list_change_sets(StackName=stack_id)["Summaries"]
        except Exception as error:
            yield f"no events: {error}"
            continue
        yield from (each["ResourceStatusReason"] for each in reversed(events) if "ResourceStatusReason" in each)
        yield from (each["StatusReason"] for each in sets if each.get("StatusReason"))


def _stay_here() -> None:
    """Let nothing leave this computer: a test is against the emulated AWS alone."""

    def look(event: str, arguments: Sequence[Any]) -> None:
        if event == "socket.getaddrinfo":
            host = arguments[0]
        elif event == "socket.connect" and isinstance(arguments[1], tuple):
            host = arguments[1][0]
        else:
            return
        name = host.decode() if isinstance(host, bytes) else host
        if name is not None and name not in _LOOPBACK:
            _notes.outside.append(str(name))
            raise OutsideError(f"nothing outside this computer is reached: {name}")

    sys.addaudithook(look)


def _reset() -> None:
    """Forget all that there is in the account."""
    key = os.environ["AWS_ACCESS_KEY_ID"]
    headers = {"Authorization": f"AWS4-HMAC-SHA256 Credential={key}/20000101/us-east-1/emulator/aws4_request"}
    url = f"{os.environ['AWS_ENDPOINT_URL']}/moto-api/reset"
    with urllib.request.urlopen(urllib.request.Request(url, b"", headers, method="POST")):  # noqa: S310 - own server
        pass


def _sleep(sleep: Callable[[float], None], seconds: float) -> None:
    sleep(min(seconds, _LONGEST_SLEEP))


# How LocalStack compares

_IN_ANY_ORDER = ("Changes", "Details", "Outputs", "Parameters", "Tags")
"""Lists that AWS gives in no order of their own: recordings of one thing differ in it."""


def _aligned(recorded: Any, answered: Any) -> tuple[Any, Any]:
    """Return what AWS answered and what the emulated one did, without what the tests do not mean to compare.

    Many recordings are older than the fixtures, which ask for capabilities now and give events in another form; and
    AWS says of a new resource no more that it is a replacement.
    """
    if isinstance(recorded, dict) and isinstance(answered, dict):
        keys = [*recorded, *(key for key in answered if key not in recorded)]
        stale = {"Capabilities"} if not recorded.get("Capabilities") else set()
        if recorded.get("Action") == "Add":
            stale.add("Replacement")
        keys = [key for key in keys if key not in stale]
        pairs = {key: _aligned(recorded.get(key, _ABSENT), answered.get(key, _ABSENT)) for key in keys}
        both = [{key: pair[side] for key, pair in pairs.items() if pair[side] is not _ABSENT} for side in (0, 1)]
        return both[0], both[1]
    if isinstance(recorded, str) and isinstance(answered, str):
        return _MADE_UP.sub(r"\1-made-up", recorded), _MADE_UP.sub(r"\1-made-up", answered)
    if isinstance(recorded, list) and isinstance(answered, list) and len(recorded) == len(answered):
        aligned = [_aligned(*pair) for pair in zip(recorded, answered, strict=True)]
        return [each for each, _ in aligned], [each for _, each in aligned]
    return recorded, answered


_ABSENT = object()
_MADE_UP = re.compile(r"(CFN-\w+|<stack-name:1>-\w+)-\w{12}")
"""A name that CloudFormation makes up: many recordings have it as it was."""


def _ordered(value: Any) -> Any:
    """Return a value with its lists without an order of their own in one."""
    if isinstance(value, list):
        return [_ordered(each) for each in value]
    if not isinstance(value, dict):
        return value
    members = {key: _ordered(each) for key, each in value.items()}
    for key in set(_IN_ANY_ORDER) & members.keys():
        if isinstance(members[key], list):
            members[key].sort(key=lambda each: json.dumps(each, sort_keys=True))
    return members


def _compare_aligned() -> None:
    from localstack_snapshot.snapshots import prototype

    result = prototype.SnapshotMatchResult

    def compared(recorded: Any, answered: Any, key: str) -> Any:
        if key == "per-resource-events" and '"EventId"' in json.dumps(recorded):
            return result({}, {}, key=key)
        return result(*_aligned(_ordered(recorded), _ordered(answered)), key=key)

    prototype.SnapshotMatchResult = compared


# Hooks


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--recordings", choices=sorted(MARKERS), help="whose tests these are")


def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS.values():
        config.addinivalue_line("markers", f"{marker}: passed on AWS")
    time.sleep = partial(_sleep, time.sleep)
    _watch_calls()
    _stay_here()
    if config.getoption("--recordings") == "localstack":
        _compare_aligned()

    def give_up(*_: object) -> None:
        raise TimeoutError(f"given up after {_LIMIT} s")

    signal.signal(signal.SIGALRM, give_up)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    marker = MARKERS[config.getoption("--recordings")]
    chosen = [each for each in items if each.get_closest_marker(marker)]
    config.hook.pytest_deselected(items=[each for each in items if each not in chosen])
    # What all tests share that use it has to outlive them.
    items[:] = sorted(chosen, key=_shares_role)
    for item in items:  # what LocalStack has not may well be here
        for node in item.listchain():
            node.own_markers[:] = [each for each in node.own_markers if each.name != "skip"]


def _shares_role(item: pytest.Item) -> bool:
    return "lambda_su_role" in getattr(item, "fixturenames", ())


def _is_first(item: pytest.Item) -> bool:
    """Tell whether a test is the first of those that share an account: of a class, or of a fixture."""
    at = item.session.items.index(item)
    before = item.session.items[at - 1] if at else None
    if before is None:
        return True
    if _shares_role(item):
        return not _shares_role(before)
    of_class = item.getparent(pytest.Class)
    return of_class is None or of_class is not before.getparent(pytest.Class)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    global _notes  # noqa: PLW0603 - one test at a time
    _notes = _Notes()
    if _is_first(item):
        _reset()
    signal.alarm(_LIMIT)
    try:
        return (yield)
    finally:
        signal.alarm(0)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    # The first phase that does not pass decides, or else the test itself; what cannot be cleaned up does not count.
    if (report.when == "setup" and not report.passed) or report.when == "call":
        failed = report.failed
        result = {
            "outcome": report.outcome,
            "answers": [*_notes.answers, *(_reasons() if failed else ())],
            "outside": _notes.outside,
            "failure": report.longreprtext[-_SHOWN:] if failed else "",
            "seconds": round(report.duration, 1),
        }
        _write(item.config, item.nodeid, result)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.failed:  # its tests would be missing without a word
        failure = {"outcome": "failed", "answers": [], "outside": [], "failure": report.longreprtext[-_SHOWN:]}
        _write(collector.config, collector.nodeid, failure)
    return report


def _write(config: pytest.Config, test: str, result: Mapping[str, Any]) -> None:
    line = json.dumps({"test": f"{config.getoption('--recordings')}/{test}", **result})
    with Path(os.environ["RECORDINGS_RESULTS"]).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
