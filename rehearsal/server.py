"""The process of the emulated AWS on a free loopback port: moto, and what stands in front of it or in its place.

`rehearsal.aws` starts it. CloudFormation is `rehearsal.cloudformation`; `gaps` are what else moto lacks.
"""

from __future__ import annotations

import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from typing import cast
from urllib.parse import parse_qsl
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from rehearsal import gaps, mailbox
from rehearsal.aws import ACCOUNT
from rehearsal.cloudformation import service
from rehearsal.cloudformation.clients import Clients
from rehearsal.cloudformation.durations import Clock, Speed
from rehearsal.cloudformation.engine import Engine
from rehearsal.cloudformation.nested import NestedStack
from rehearsal.cloudformation.stacks import STACK_TYPE
from rehearsal.faults import FAULTS_IN_FORCE
from rehearsal.functions import Functions
from rehearsal.gaps import invocations, launches
from rehearsal.mailbox import Mailbox
from rehearsal.nodes import Nodes
from rehearsal.resources import MODELS
from rehearsal.resources.custom import CustomResource
from rehearsal.resources.model import Model
from rehearsal.resources.waits import WaitCondition, WaitConditionHandle

_RESET = "/moto-api/reset"
_FAULTS = "/rehearsal/faults"


class Front:
    """The first to see a request: letters go to the mailbox, a reset is everybody's, all else is moto's."""

    def __init__(self, application: WSGIApplication, letters: Mailbox, resets: Iterable[Callable[[], None]]) -> None:
        self._application = application
        self._letters = letters
        self._resets = tuple(resets)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one request."""
        path = environ["PATH_INFO"]
        if path.startswith(mailbox.PATH):
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start_response(self._deliver(mailbox.mail_key(path), body), [("Content-Length", "0")])
            return []
        if path == _FAULTS:
            start_response(_set_faults(environ["QUERY_STRING"]), [("Content-Length", "0")])
            return []
        if path == _RESET:
            for reset in self._resets:
                reset()
        return self._application(environ, start_response)

    def _deliver(self, key: str, body: bytes) -> str:
        try:
            self._letters.post(key, body)
        except LookupError:
            return "404 Not Found"
        return "200 OK"


def _set_faults(query: str) -> str:
    """Mend everything, then put in force what the query says: name=target."""
    FAULTS_IN_FORCE.clear()
    try:
        for name, target in parse_qsl(query, keep_blank_values=True):
            FAULTS_IN_FORCE.inject(name, target)
    except ValueError:
        return "400 Bad Request"
    return "200 OK"


def assemble(endpoint: str, speed: Speed) -> tuple[Front, Functions]:
    """Return the application that serves this endpoint, and what runs its functions."""
    letters = Mailbox()
    clock = Clock(speed)
    functions = Functions(endpoint, speed)
    models: dict[str, Model] = {
        **MODELS,
        "AWS::CloudFormation::CustomResource": CustomResource(functions, letters, endpoint),
        "AWS::CloudFormation::WaitCondition": WaitCondition(letters, clock),
        "AWS::CloudFormation::WaitConditionHandle": WaitConditionHandle(letters, endpoint),
    }
    clients = Clients(endpoint)
    engine = Engine(ACCOUNT, clients, models, clock)
    models[STACK_TYPE] = NestedStack(engine)
    gaps.fill()
    invocations.fill(functions)
    nodes = Nodes(clients, clock, FAULTS_IN_FORCE)
    launches.LISTENERS.append(nodes.launched)
    service.serve(engine)
    # Who waits for a letter or a function is sent away before the engine waits for what is under way.
    resets = (FAULTS_IN_FORCE.clear, engine.abandon, letters.reset, functions.reset, nodes.reset, engine.reset)
    return Front(DomainDispatcherApplication(create_backend_app), letters, resets), functions


def main() -> None:
    """Serve until standard input ends; the first line of standard output is the port."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    # The address has to be known before anything is made that is served there.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        application, functions = assemble(f"http://127.0.0.1:{port}", cast(Speed, sys.argv[1]))
        server = make_server(
            "127.0.0.1",
            port,
            application,
            threaded=True,
            request_handler=MotoRequestHandler,
            fd=listener.fileno(),
        )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(port, flush=True)
    sys.stdin.read()
    functions.stop()


if __name__ == "__main__":
    main()
