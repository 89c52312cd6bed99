"""Lambda functions run on this machine as they do on AWS, as far as a function can tell."""

import io
import json
import os
import textwrap
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from emulator.aws import EmulatedAws
from tests.emulator.account import Account

WaitFor = Callable[[Callable[[], bool]], None]


class Lambda:
    """The functions of an account, by name."""

    def __init__(self, aws: EmulatedAws) -> None:
        self.account = Account(aws)
        self._role = self.account.role()["Arn"]
        self.client = self.account.client("lambda")

    def make(self, name: str, source: str, **configuration: Any) -> str:
        arn: str = self.client.create_function(
            FunctionName=name,
            Code={"ZipFile": archive(source)},
            Role=self._role,
            **{"Handler": "index.handler", "Runtime": "python3.12", "Timeout": 30, **configuration},
        )["FunctionArn"]
        return arn

    def invoke(self, name: str, event: Any = None, **arguments: Any) -> tuple[Any, str | None]:
        """Return the result, and `Unhandled` if it is an error."""
        answer = self.client.invoke(FunctionName=name, Payload=json.dumps(event), **arguments)
        payload = answer["Payload"].read()
        return json.loads(payload) if payload else None, answer.get("FunctionError")

    def log(self, name: str) -> list[str]:
        events = self.account.client("logs").filter_log_events(logGroupName=f"/aws/lambda/{name}")["events"]
        return [event["message"] for event in events]


def archive(source: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr("index.py", textwrap.dedent(source))
    return content.getvalue()


COUNTER = """
    calls = 0

    def handler(event, context):
        global calls
        calls += 1
        return calls
    """


@pytest.fixture
def functions(rehearsed_aws: EmulatedAws) -> Lambda:
    return Lambda(rehearsed_aws)


def test_a_function_stays_warm_until_it_changes(functions: Lambda) -> None:
    functions.make("f", COUNTER)
    assert [functions.invoke("f")[0] for _ in range(3)] == [1, 2, 3]
    functions.client.update_function_configuration(FunctionName="f", Environment={"Variables": {"A": "1"}})
    assert functions.invoke("f")[0] == 1
    functions.client.update_function_code(FunctionName="f", ZipFile=archive(COUNTER.replace("+= 1", "+= 10")))
    assert functions.invoke("f")[0] == 10


@pytest.mark.parametrize(
    ("source", "error_type", "message"),
    [
        ("def handler(event, context): raise ValueError('no')", "ValueError", "no"),
        ("import nowhere", "ModuleNotFoundError", "No module named 'nowhere'"),
        ("import os\ndef handler(event, context): os._exit(3)", "Runtime.ExitError", "exit status 3"),
    ],
)
def test_a_failure_is_the_answer(functions: Lambda, source: str, error_type: str, message: str) -> None:
    functions.make("f", source)
    for _ in range(2):  # the second finds a process that still runs, or gets another
        error, kind = functions.invoke("f")
        assert kind == "Unhandled"
        assert error["errorType"] == error_type
        assert message in error["errorMessage"]
    assert any(message in line for line in functions.log("f"))


@pytest.mark.slow
def test_a_function_that_takes_too_long_is_ended(functions: Lambda) -> None:
    source = """
        import threading

        def handler(event, context):
            if event == "wait":
                threading.Event().wait()
            return "done"
        """
    functions.make("f", source, Timeout=1)
    error, _ = functions.invoke("f", "wait")
    assert error["errorType"] == "Sandbox.Timedout"
    assert error["errorMessage"].endswith("Error: Task timed out after 1.00 seconds")
    assert functions.invoke("f", "go") == ("done", None)


def test_what_a_function_prints_is_in_its_log_group(functions: Lambda) -> None:
    source = """
        import os
        import sys

        def handler(event, context):
            print("to standard output")
            sys.stderr.write("to standard error\\n")
            os.system("echo from a child")
        """
    functions.make("f", source)
    functions.invoke("f")
    start, *printed, end, report = functions.log("f")
    assert start.startswith("START RequestId: ")
    assert sorted(printed) == ["from a child", "to standard error", "to standard output"]
    assert end.startswith("END RequestId: ")
    assert "Memory Size: 128 MB" in report


def test_temporary_files_end_with_the_process(functions: Lambda) -> None:
    """ParallelCluster's CDK keeps its packages in such a directory, and removes it only if it is not killed."""
    source = """
        import tempfile

        def handler(event, context):
            return tempfile.mkdtemp()
        """
    functions.make("f", source)
    directory = Path(functions.invoke("f")[0])
    assert directory.is_dir()
    functions.account.aws.reset()
    assert not directory.exists()


@pytest.mark.slow
def test_a_function_ends_with_its_server_and_leaves_nothing(tmp_path: Path, wait_for: WaitFor) -> None:
    source = """
        import json
        import os
        import threading
        from pathlib import Path

        def handler(event, context):
            Path(event).write_text(json.dumps([os.getpid(), os.environ["LAMBDA_TASK_ROOT"]]))
            if event.endswith("busy"):
                threading.Event().wait()
        """
    busy, idle = tmp_path / "busy", tmp_path / "idle"
    with EmulatedAws() as aws:
        functions = Lambda(aws)
        functions.make("f", source, Timeout=900)
        functions.make("g", source)
        functions.invoke("g", str(idle))
        functions.invoke("f", str(busy), InvocationType="Event")
        wait_for(lambda: busy.exists() and busy.read_text() != "")
        aws._process.kill()
    for report in (busy, idle):
        process, directory = json.loads(report.read_text())
        wait_for(partial(has_ended, process))
        assert not Path(directory).exists()


def has_ended(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False
