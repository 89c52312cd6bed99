"""Runs one Lambda function: the process that `emulator.functions` starts for it, in the function's own environment.

Writes one JSON answer when the function's code is loaded, and one for each JSON invocation that it reads, a line each:
{"event": ..., "request_id": ..., "arn": ..., "deadline": seconds since 1970, "environment": {...}} -> {"result": ...}
or {"error": {...}}. The environment is what changes of that of the process.
What the function prints goes to standard error, which the starter passes on to the function's log group. Where AWS is,
is said by the environment (AWS_ENDPOINT_URL and credentials).

Imports nothing of this project: a function may need an interpreter with packages of its own.
"""

from __future__ import annotations

import argparse
import gc
import http.client
import importlib
import json
import os
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO

Handler = Callable[[Any, "LambdaContext"], Any]


@dataclass(frozen=True)
class LambdaContext:
    """What a handler is told about its invocation (https://docs.aws.amazon.com/lambda/latest/dg/python-context.html)."""

    aws_request_id: str
    invoked_function_arn: str
    deadline: float
    function_name: str = os.environ.get("AWS_LAMBDA_FUNCTION_NAME", "")
    function_version: str = "$LATEST"
    memory_limit_in_mb: str = os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
    log_group_name: str = os.environ.get("AWS_LAMBDA_LOG_GROUP_NAME", "")
    log_stream_name: str = os.environ.get("AWS_LAMBDA_LOG_STREAM_NAME", "")
    identity: None = None
    client_context: None = None

    def get_remaining_time_in_millis(self) -> int:
        """Return how long the invocation may still take."""
        return max(int((self.deadline - time.time()) * 1000), 0)


def load(handler: str, directory: str) -> Handler:
    """Import the handler `module.function` from the function's code."""
    sys.path.insert(0, directory)
    module, _, function = handler.rpartition(".")
    loaded: Handler = getattr(importlib.import_module(module.replace("/", ".")), function)
    return loaded


def serve(function: Handler, answers: TextIO) -> None:
    """Answer invocations until standard input ends."""
    for line in sys.stdin:
        invocation = json.loads(line)
        context = LambdaContext(invocation["request_id"], invocation["arn"], invocation["deadline"])
        os.environ.update(invocation["environment"])
        try:
            answer = {"result": function(invocation["event"], context)}
            json.dumps(answer)
        except Exception as error:
            answer = described(error)
        put(answers, answer)


def described(error: Exception) -> dict[str, Any]:
    """Return an answer that says what went wrong, and print it into the log."""
    traceback.print_exception(error)
    return {
        "error": {
            "errorMessage": str(error),
            "errorType": type(error).__name__,
            "stackTrace": traceback.format_tb(error.__traceback__),
        }
    }


def put(answers: TextIO, answer: dict[str, Any]) -> None:
    """Write an answer, after everything that was printed before it."""
    sys.stdout.flush()
    sys.stderr.flush()
    print(json.dumps(answer), file=answers, flush=True)


def speak_plainly_to_this_machine() -> None:
    """Let HTTPSConnection do without TLS here: some code takes the URL that a custom resource answers to for HTTPS."""
    connect = http.client.HTTPSConnection.connect

    def plain_or_not(connection: http.client.HTTPSConnection) -> None:
        if connection.host == "127.0.0.1":
            http.client.HTTPConnection.connect(connection)
        else:
            connect(connection)

    http.client.HTTPSConnection.connect = plain_or_not  # type: ignore[assignment, method-assign]


def end_with(starter: int, directory: str) -> None:
    """End this process when its starter has ended silently; a function may be busy forever.

    Args:
        starter: Its process id.
        directory: What nobody else is there to remove then.
    """

    def watch() -> None:
        while os.getppid() == starter:
            threading.Event().wait(1)
        shutil.rmtree(directory, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def cap_sleep(longest: float) -> None:
    """Let no `time.sleep` take longer than this, in seconds."""
    sleep = time.sleep

    def short(seconds: float) -> None:
        sleep(min(seconds, longest))

    time.sleep = short  # type: ignore[assignment]


def main() -> None:
    """Run the function that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("handler", help="module.function")
    parser.add_argument("directory", help="where its code is")
    parser.add_argument("--longest-sleep", type=float, help="seconds")
    arguments = parser.parse_args()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else may write among the answers
    end_with(os.getppid(), arguments.directory)
    if arguments.longest_sleep is not None:
        cap_sleep(arguments.longest_sleep)
    speak_plainly_to_this_machine()
    gc.set_threshold(50_000)  # what functions import is thousands of classes and no garbage
    try:
        function = load(arguments.handler, arguments.directory)
    except Exception as error:
        put(answers, described(error))
        return
    put(answers, {"result": "ready"})
    serve(function, answers)
    shutil.rmtree(arguments.directory, ignore_errors=True)


if __name__ == "__main__":
    main()
