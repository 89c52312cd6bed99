"""The process of the emulated AWS on a free loopback port: moto, and what stands in front of it or in its frame.

`emulator.aws` starts it. CloudFormation is `emulator.cloudformation`; `moto_patches` is what else moto lacks.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import cast
from urllib.parse import parse_qsl, unquote
from wsgiref.types import StartResponse, WSGIEnvironment
from xml.sax.saxutils import escape

from emulator import botocore_data  # noqa: F401 - before moto, which reads it while it is imported

# isort: split
from moto.ec2.exceptions import EC2ClientError
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from emulator import callbacks, gate, moto_patches
from emulator.agents import Agents
from emulator.aws import ACCOUNT
from emulator.background import Background
from emulator.callbacks import Callbacks
from emulator.calls import CALLS
from emulator.clients import Clients, Endpoint
from emulator.clock import Clock, Speed
from emulator.clones import Clones
from emulator.cloudformation import service
from emulator.cloudformation.custom import CustomResource
from emulator.cloudformation.engine import Engine
from emulator.cloudformation.nested import NestedStack
from emulator.cloudformation.stacks import STACK_TYPE
from emulator.cloudformation.waits import WaitCondition, WaitConditionHandle
from emulator.faults import FAULTS_IN_FORCE
from emulator.functions import Functions
from emulator.gate import Answer
from emulator.keys import KEYS, access_key
from emulator.machinery import Machinery
from emulator.machines.databases import Databases
from emulator.machines.fleet import Fleet
from emulator.moto_patches import groups, invocations, lives
from emulator.moto_patches.rds import Rds
from emulator.moto_patches.ssm import Ssm
from emulator.node_faults import NodeFaults
from emulator.nodes import Nodes
from emulator.resources import MODELS
from emulator.resources.model import NOT_EMULATED, Model

_RESET = "/moto-api/reset"

Control = Callable[[str, str], str]
"""What a path of the emulator's own does with the query and the body of a request, and what it answers.

Raises:
    ValueError: They are invalid.
"""


class Front:
    """The first to see a request: it is refused, or a message to a callback, or one to a control, or for moto."""

    def __init__(
        self,
        application: DomainDispatcherApplication,
        callbacks_: Callbacks,
        resets: Iterable[Callable[[], None]],
        controls: Mapping[str, Control],
        *,
        clones: Clones,
        endpoint: Endpoint,
    ) -> None:
        self._application = application
        self._endpoint = endpoint
        self._callbacks = callbacks_
        self._resets = tuple(resets)
        self._controls = controls
        self._clones = clones

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one request."""
        path = environ["PATH_INFO"]
        answer = gate.refusal(environ, self._endpoint)
        if answer is None and path.startswith(callbacks.PATH):  # the URL is the secret
            with self._clones.requests.served():
                answer = self._deliver(callbacks.callback_key(path), environ)
        answer = answer or gate.public_object(environ) or gate.refusal_of_key(environ)
        if answer is None and path in self._controls:
            answer = self._control(path, environ["QUERY_STRING"], _body(environ).decode())
        if answer:
            return _send(answer, environ, start_response)
        of_node = KEYS.are_of_node(access_key(environ.get("HTTP_AUTHORIZATION", "")) or "")
        with self._clones.requests.served(of_node=of_node):
            if path == _RESET:
                for reset in self._resets:
                    reset()
            try:
                served: Iterable[bytes] = self._application(environ, start_response)
            except Exception as error:  # moto fails on services, headers and paths that it does not know
                return _send(_not_implemented(error), environ, start_response)
            return served

    def serve_machine(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one request of a machine, whose root is no user of this computer and does not become one by a call."""
        if not environ["PATH_INFO"].startswith(callbacks.PATH):
            try:
                service = str(self._application.get_application(environ).service)  # type: ignore[attr-defined]
            except Exception as error:
                return _send(_not_implemented(error), environ, start_response)
            if answer := gate.refusal_of_machine(environ, service):
                return _send(answer, environ, start_response)
        with gate.machine():
            return self(environ, start_response)

    def _deliver(self, key: str, environ: WSGIEnvironment) -> Answer:
        if not self._callbacks.knows(key):  # before anything is read of somebody who has no key
            return _plain(HTTPStatus.NOT_FOUND)
        try:
            self._callbacks.send(key, _body(environ))
        except LookupError:
            return _plain(HTTPStatus.NOT_FOUND)
        return _plain(HTTPStatus.OK)

    def _control(self, path: str, query: str, body: str) -> Answer:
        try:
            return _plain(HTTPStatus.OK, self._controls[path](query, body))
        except ValueError as error:
            return _plain(HTTPStatus.BAD_REQUEST, str(error))


def _body(environ: WSGIEnvironment) -> bytes:
    length = environ.get("CONTENT_LENGTH") or "0"
    body: bytes = environ["wsgi.input"].read(int(length) if length.isdecimal() else 0)
    return body


def _plain(status: HTTPStatus, text: str = "") -> Answer:
    return Answer(status, [("Content-Length", str(len(text.encode())))], text.encode())


def _send(answer: Answer, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    start_response(f"{answer.status.value} {answer.status.phrase}", answer.headers)
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [answer.body]


def _not_implemented(error: Exception) -> Answer:
    """Return the answer to a request that moto cannot serve.

    Clients of services with a JSON protocol take the code from the header.
    """
    code, frame = "NotImplemented", traceback.extract_tb(error.__traceback__)[-1]
    if isinstance(error, NotImplementedError):  # moto names the action
        message = NOT_EMULATED.format(error)
    else:
        message = f"The emulator cannot answer this request: {error!r} ({frame.filename}:{frame.lineno})"
    body = f"<ErrorResponse><Error><Code>{code}</Code><Message>{escape(message)}</Message></Error></ErrorResponse>"
    headers = [("Content-Type", "text/xml"), ("Content-Length", str(len(body.encode()))), ("X-Amzn-ErrorType", code)]
    return Answer(HTTPStatus.NOT_IMPLEMENTED, headers, body.encode())


def _afflict(query: str, _: str) -> str:
    """Let something happen to an instance: region, instance and event are in the query."""
    values = dict(parse_qsl(query))
    try:
        lives.afflict(values["region"], values["instance"], values["event"])
    except EC2ClientError as error:
        raise ValueError(error.message) from error
    return ""


def _expire(role_arn: str, _: str) -> str:
    KEYS.expire(unquote(role_arn))
    return ""


def _take_calls(*_: str) -> str:
    return json.dumps(CALLS.take())


class Emulator:
    """The parts of the emulated AWS in this process, and how they are wired."""

    def __init__(self, speed: Speed, machinery: Machinery | None = None) -> None:
        self._endpoint = Endpoint()
        self._background = background = Background()
        awaited = Callbacks()
        # Nodes that are only played answer at once; a machine that boots takes its time.
        clock = Clock(speed, limit=900.0) if machinery else Clock(speed)
        self._functions = functions = Functions(self._endpoint, speed, background)
        models: dict[str, Model] = {
            **MODELS,
            "AWS::CloudFormation::CustomResource": CustomResource(functions, awaited, self._endpoint),
            "AWS::CloudFormation::WaitCondition": WaitCondition(awaited, clock),
            "AWS::CloudFormation::WaitConditionHandle": WaitConditionHandle(awaited, self._endpoint),
        }
        self._engine = engine = Engine(ACCOUNT, Clients(self._endpoint), models, clock)
        models[STACK_TYPE] = NestedStack(engine)
        moto_patches.fill()
        groups.hold_back_what_ends(1 if clock.is_real else groups.FAST)
        invocations.fill(functions)
        clients_of_nodes = Clients(self._endpoint, KEYS.node)
        self._fleet = Fleet(machinery, clients_of_nodes, self._endpoint, speed) if machinery else None
        self._clones = Clones()
        nodes = Nodes(clients_of_nodes, clock, FAULTS_IN_FORCE, background, lambda: self._clones.requests.of_others)
        lives.LISTENERS.append(self._fleet or nodes)
        service.serve(engine)
        Ssm.agents = self._agents = agents = Agents(clients_of_nodes)
        if self._fleet:
            agents.shells = self._fleet.shell
            Rds.servers = self._databases = Databases(self._fleet)
        self._node_faults = NodeFaults(self._fleet)
        # What waits for a message or a function is released before the engine waits for operations in progress.
        resets = (
            FAULTS_IN_FORCE.clear,
            engine.abandon,
            awaited.reset,
            background.reset,
            functions.reset,
            agents.reset,
            engine.reset,
            *((self._databases.reset, self._fleet.reset) if self._fleet else ()),
        )
        controls: dict[str, Control] = {
            "/emulator/faults": self._set_faults,
            "/emulator/shell": self._set_shell,
            "/emulator/instances": _afflict,
            "/emulator/calls": _take_calls,
            "/emulator/expire": _expire,
            "/emulator/clone": lambda *_: str(self._clones.make(self)),
            "/emulator/end-clone": self._end_clone,
        }
        application = DomainDispatcherApplication(create_backend_app)
        self._front = Front(application, awaited, resets, controls, clones=self._clones, endpoint=self._endpoint)
        if self._fleet:
            self._fleet.application = self._front.serve_machine

    def serve(self) -> int:
        """Serve on a free loopback port, and return it."""
        server = make_server("127.0.0.1", 0, self._front, threaded=True, request_handler=MotoRequestHandler)
        self._endpoint.url = f"http://127.0.0.1:{server.port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server.port

    def pause(self, seconds: float) -> None:
        """Stop all that runs by itself, and wait for what is in progress.

        Raises:
            ValueError: Something is, after so many seconds.
        """
        if self._fleet:
            raise ValueError("cannot clone an account whose instances are machines")
        self._engine.settle(seconds)
        self._background.pause(seconds)
        self._functions.stop()

    def resume(self) -> None:
        """Let everything continue that `pause` stopped."""
        self._background.resume()

    def run(self, life: int) -> None:
        """Wait until a file ends, and end with it what was started; clones are made meanwhile."""
        self._clones.run(self, life)
        self._functions.stop()
        self._agents.reset()
        if self._fleet:
            self._fleet.reset()

    def _set_faults(self, query: str, _: str) -> str:
        """End all faults, let those begin that the query has, name=target, and return the instances they concern."""
        FAULTS_IN_FORCE.clear()
        self._node_faults.end()
        for name, target in (asked := parse_qsl(query, keep_blank_values=True)):
            FAULTS_IN_FORCE.inject(name, target)
        return " ".join(filter(None, (self._node_faults.begin(*each) for each in asked)))

    def _set_shell(self, _: str, program: str) -> str:
        self._agents.reset()
        self._agents.shell = program or None
        return ""

    def _end_clone(self, _: str, port: str) -> str:
        self._clones.end(int(port))
        return ""


def main() -> None:
    """Serve until standard input ends; the first line of standard output is the port and the access key."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    machinery = Machinery.of_text(sys.argv[2]) if len(sys.argv) > 2 else None  # noqa: PLR2004
    emulator = Emulator(cast(Speed, sys.argv[1]), machinery)
    with suppress(BrokenPipeError):  # who started it has ended, and with that its standard input
        print(emulator.serve(), KEYS.own, flush=True)
    emulator.run(sys.stdin.fileno())
    os._exit(0)  # all is ended; the interpreter would take a second to delete what moto holds


if __name__ == "__main__":
    main()
