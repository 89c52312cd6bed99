"""Runs the Lambda functions of the emulated account, each in a process of its own on this machine.

A function keeps its process, as a warm one does on AWS, until its code or configuration changes; it serves one event
at a time. What it prints is in its log group. Only Python runs, and with this interpreter, whatever version the runtime
names. Functions with ParallelCluster's layer run in .venv-pcluster, which holds what the layer does.

At speed `fast` a function may take three times its timeout, because a busy machine is slower than Lambda, and no
`time.sleep` in it takes longer than a tenth of a second.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import boto3
from moto.awslambda.models import LambdaFunction, lambda_backends

from emulator.aws import SECRET, settings_for
from emulator.background import Background, Work
from emulator.clients import Endpoint, write_log
from emulator.clock import Speed
from emulator.faults import FAULTS_IN_FORCE
from emulator.keys import KEYS
from toolchain.jsii_start import UNPACKED
from toolchain.values import UnsupportedError

PCLUSTER_PYTHON: Final = Path(__file__).parents[1] / ".venv-pcluster/bin/python"
PCLUSTER_LAYER: Final = "PCLayer-"
"""How the name of the layer with ParallelCluster's package begins, on AWS and in `emulator.provider`."""

_WITH_CDK: Final = {"JSII_RUNTIME_PACKAGE_CACHE": "enabled", **UNPACKED}
"""Lets ParallelCluster's CDK link what was unpacked once; later versions of jsii do so unless told otherwise."""
_RUNTIME: Final = Path(__file__).with_name("lambda_runtime.py")
_SESSION: Final = boto3.Session(KEYS.own, SECRET)
_PATIENCE: Final[dict[Speed, int]] = {"real": 1, "fast": 3}
_LONGEST_SLEEP: Final = "0.1"
_TEMPORARY: Final = ".temporary"
_SHORTEST_INTERVAL: Final = 0.5
_LONGEST_INTERVAL: Final = 2.0
"""Of what is repeated at speed `fast`: to ask for a cluster takes a tenth of a second of CPU, and nodes a minute."""
_GROWTH: Final = 1.5
_LOADING_SECONDS: Final = 60.0
_OUT_OF_TIME: Final = 1.0
"""Seconds of a function that a fault makes run out of time: enough for its last words, and for nothing else."""
_GRACE: Final = 2.0
"""Seconds more for these words: they are due half a second before the end, which a busy machine may miss."""


class FunctionError(RuntimeError):
    """A function ended without a result.

    Attributes:
        payload: What Lambda answers in its place: errorMessage, errorType and perhaps more.
    """

    def __init__(self, payload: dict[str, Any]) -> None:
        super().__init__(payload["errorMessage"])
        self.payload = payload


class Functions:
    """The functions of one server, in all its regions. Functions are named by ARN, without a version."""

    def __init__(self, endpoint: Endpoint, speed: Speed, background: Background) -> None:
        self._endpoint = endpoint
        self._speed: Speed = speed
        self._lock = threading.Lock()
        self._processes: dict[str, _Process] = {}
        self._at_work: Counter[str] = Counter()
        self._background = background

    def invoke(self, arn: str, event: Any) -> Any:
        """Run a function and return its result.

        Raises:
            FunctionError: It failed or took too long.
            UnsupportedError: It cannot run here; the message says why.
            moto.awslambda.exceptions.UnknownFunctionException: There is none.
        """
        return self._process(arn).invoke(event)

    def send(self, arn: str, event: Any) -> None:
        """Run a function without waiting for its result. One that fails is not tried again, as Lambda does twice."""
        process = self._process(arn)

        def work(_: threading.Event) -> bool:
            with contextlib.suppress(FunctionError):  # its log has it
                process.invoke(event)
            return True

        self._in_background(arn, work)

    def repeat(self, arn: str, event: Any, seconds: float, wanted: Callable[[], bool]) -> None:
        """Send an event to a function every so many seconds as long as it is wanted.

        At speed `fast`, half a second for what is quickly done, and up to two for what is not.
        """
        shortest, longest = (_SHORTEST_INTERVAL, _LONGEST_INTERVAL) if self._speed == "fast" else (seconds, seconds)

        def work(paused: threading.Event) -> bool:
            interval = min(seconds, shortest)
            while not paused.wait(interval):
                if not wanted():
                    return True
                with contextlib.suppress(FunctionError):
                    self.invoke(arn, event)
                interval = min(seconds, longest, interval * _GROWTH)
            return False

        self._in_background(arn, work)

    def is_at_work(self, arn: str) -> bool:
        """Return whether an event that was sent to the function is not done with, or one will be sent again."""
        with self._lock:
            return self._at_work[arn] > 0

    def settle(self, arn: str) -> None:
        """Wait until the function is done with the event that it has in hand, and all that it printed is in its log."""
        with self._lock:
            process = self._processes.get(arn)
        if process:
            process.settle()

    def discard(self, arn: str) -> None:
        """End the process of a function, if it has one, whatever it is doing."""
        with self._lock:
            process = self._processes.pop(arn, None)
        if process:
            process.stop()

    def stop(self) -> None:
        """End all processes."""
        for arn in list(self._processes):
            self.discard(arn)

    reset = stop

    def _in_background(self, arn: str, work: Work) -> None:
        with self._lock:
            self._at_work[arn] += 1

        def run(paused: threading.Event) -> bool:
            is_done = True
            try:
                is_done = work(paused)
            finally:
                if is_done:
                    with self._lock:
                        self._at_work[arn] -= 1
            return is_done

        self._background.start(run)

    def _process(self, arn: str) -> _Process:
        _, _, _, region, account, *_ = arn.split(":")
        function = lambda_backends[account][region].get_function(arn)
        revision = json.dumps(function.get_configuration())
        with self._lock:
            process = self._processes.get(arn)
            if process and process.is_alive and process.revision == revision:
                return process
            if process:
                process.stop()
            self._processes[arn] = process = _Process(function, revision, self._endpoint.url, self._speed)
        return process


class _Process:
    """The warm process of one function, as it was configured when the process started."""

    def __init__(self, function: LambdaFunction, revision: str, endpoint: str, speed: Speed) -> None:
        python = _interpreter(function)
        self.revision = revision
        self._arn = function.function_arn
        self._timeout = int(function.timeout)
        self._patience = _PATIENCE[speed]
        self._is_provider = python == PCLUSTER_PYTHON
        self._loaded = False
        self._memory = str(function.memory_size)
        self._turn = threading.Lock()
        self._log = _Log(function.function_name, _SESSION.client("logs", function.region, endpoint_url=endpoint))
        self._directory = tempfile.TemporaryDirectory(prefix="function-")
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
        command: list[str | Path] = [python, _RUNTIME, str(function.handler), self._directory.name]
        if speed == "fast":
            command += ["--longest-sleep", _LONGEST_SLEEP]
        with zipfile.ZipFile(io.BytesIO(function.code_bytes)) as archive:
            archive.extractall(self._directory.name)
        self._temporary = Path(self._directory.name, _TEMPORARY)
        self._temporary.mkdir()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._output,
            env=self._environment(function, endpoint),
            start_new_session=True,
        )

    @property
    def is_alive(self) -> bool:
        """Return whether it can take events."""
        return self._process.poll() is None

    def invoke(self, event: Any) -> Any:
        """Return the function's result for an event; one event at a time."""
        with self._turn:
            request_id = str(uuid4())
            self._log.write(f"START RequestId: {request_id} Version: $LATEST")
            started = time.monotonic()
            answer = self._ask(event, request_id)
            taken = (time.monotonic() - started) * 1000
            self._output.seek(0)
            self._log.write(*self._output.read().decode(errors="replace").splitlines())
            self._output.seek(0)
            self._output.truncate()
            self._log.write(
                *([answer["error"]["errorMessage"]] if not self.is_alive else []),
                f"END RequestId: {request_id}",
                f"REPORT RequestId: {request_id}\tDuration: {taken:.2f} ms\tBilled Duration: {taken:.0f} ms\t"
                f"Memory Size: {self._memory} MB",
            )
        if "error" in answer:
            raise FunctionError(answer["error"])
        return answer["result"]

    def settle(self) -> None:
        """Wait until no event is in hand."""
        with self._turn:
            pass

    def stop(self) -> None:
        """End the process and its children, and wait until it is gone."""
        self._kill()
        self._directory.cleanup()

    def _ask(self, event: Any, request_id: str) -> dict[str, Any]:
        if not self._loaded:
            loaded = self._answer(request_id, _LOADING_SECONDS)
            if "error" in loaded:
                self._kill()
                return loaded
            self._loaded = True
        runs_out_of_time = self._runs_out_of_time(event)
        seconds = _OUT_OF_TIME if runs_out_of_time else self._timeout * self._patience
        invocation = {
            "event": event,
            "request_id": request_id,
            "arn": self._arn,
            "deadline": time.time() + seconds,
            "environment": _of_faults() if self._is_provider else {},
        }
        assert self._process.stdin is not None  # noqa: S101 - stdin=PIPE
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(invocation).encode() + b"\n")
            self._process.stdin.flush()
        return self._answer(request_id, seconds + (_GRACE if runs_out_of_time else 0))

    def _answer(self, request_id: str, seconds: float) -> dict[str, Any]:
        """Return what the process says next, or what Lambda says of one that says nothing in time, or has ended."""
        output = self._process.stdout
        assert output is not None  # noqa: S101 - stdout=PIPE
        if not select.select([output], [], [], seconds)[0]:
            self._kill()
            message = f"RequestId: {request_id} Error: Task timed out after {self._timeout:.2f} seconds"
            return {"error": {"errorType": "Sandbox.Timedout", "errorMessage": message}}
        line = output.readline()
        if not line:
            status = self._process.wait()
            message = f"RequestId: {request_id} Error: Runtime exited with error: exit status {status}"
            return {"error": {"errorType": "Runtime.ExitError", "errorMessage": message}}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _runs_out_of_time(self, event: Any) -> bool:
        """Tell whether the fault `provider` is about this: a request to create a cluster.

        One to update it uses up its time by itself, when it has started the update.
        """
        is_request = isinstance(event, dict) and event.get("RequestType") == "Create"
        return is_request and self._is_provider and "provider" in FAULTS_IN_FORCE

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _environment(self, function: LambdaFunction, endpoint: str) -> dict[str, str]:
        """Return the variables that Lambda sets, those of the function, and those that lead to the emulated AWS.

        Of this process's own only the way to programs. Temporary files end with the process, as on Lambda with the
        execution environment: what is killed leaves them.

        https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
        """
        return {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),  # the CDK looks for `node`
            "LANG": "en_US.UTF-8",
            "TMPDIR": str(self._temporary),
            "TZ": ":UTC",
            **settings_for(endpoint, KEYS.own),
            "AWS_REGION": function.region,
            "AWS_DEFAULT_REGION": function.region,
            "AWS_EXECUTION_ENV": f"AWS_Lambda_{function.run_time}",
            "AWS_LAMBDA_FUNCTION_NAME": function.function_name,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": self._memory,
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_LOG_GROUP_NAME": self._log.group,
            "AWS_LAMBDA_LOG_STREAM_NAME": self._log.stream,
            **(_WITH_CDK if self._is_provider else {}),
            "LAMBDA_TASK_ROOT": self._directory.name,
            "_HANDLER": str(function.handler),
            **function.environment_vars,
        }


def _of_faults() -> dict[str, str]:
    """Return variables that tell the provider of faults, empty without; by one of them it waits until its time is over.

    They come with each event: a process that ended with them would load ParallelCluster again, for seconds of CPU.
    """
    waiting = "waits" if "provider" in FAULTS_IN_FORCE else ""
    return {"REHEARSAL_WARNING": FAULTS_IN_FORCE.target("warning"), "REHEARSAL_PROVIDER": waiting}


class _Log:
    """The log stream of one process."""

    def __init__(self, function_name: str, logs: Any) -> None:
        self.group = f"/aws/lambda/{function_name}"
        self.stream = f"{datetime.now(UTC):%Y/%m/%d}/[$LATEST]{uuid4().hex}"
        self._logs = logs

    def write(self, *lines: str) -> None:
        """Write lines."""
        messages = [line for line in lines if line]
        if messages:
            write_log(self._logs, self.group, self.stream, *messages)


def _interpreter(function: LambdaFunction) -> Path:
    """Return the Python that has what the function needs, or say what is missing."""
    name = function.function_name
    if not str(function.run_time).startswith("python"):
        raise UnsupportedError(f"function {name}: runtime {function.run_time}; only Python runs here")
    layers = [layer["Arn"] for layer in function.layers]
    if not layers:
        return Path(sys.executable)
    if any(f":layer:{PCLUSTER_LAYER}" not in layer for layer in layers):
        raise UnsupportedError(f"function {name}: layers {', '.join(layers)}; only ParallelCluster's is known here")
    if not PCLUSTER_PYTHON.exists():
        raise UnsupportedError(f"function {name}: ParallelCluster's layer, which is .venv-pcluster, is not there")
    return PCLUSTER_PYTHON
