"""What rungs use: the commands of this project in processes of their own, AWS, and where it is kept what they see."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from config.settings import Settings, load
from scripts.account import compute_fleet
from scripts.account.deployment import Deployment
from scripts.account.remote.head_node import is_head_node
from scripts.account.remote.program import of_file
from scripts.core import interrupts
from scripts.core.clock import Clock
from scripts.core.errors import ExitCode
from scripts.core.options import ROOT
from scripts.core.terminal import Say
from scripts.rehearse.prove.assumptions import by_id
from scripts.rehearse.prove.ladder import Choices, Interface, Raw, settings_of
from scripts.rehearse.prove.redact import Redactor
from scripts.rehearse.prove.report import Observation, Outcome
from scripts.watch.inventory import leftovers
from scripts.watch.inventory.model import Leftover

_LINKED: Final = (".venv", ".venv-pcluster", "node_modules")
_LEFT_OUT: Final = (".*", "build", "cdk.out", "dist", "docs", "node_modules", "tests", "__pycache__")
END_JOBS: Final = Path(__file__).with_name("end_jobs.sh")
END_JOBS_UNIT: Final = "ultracluster-prove"
"""As it has it."""
EDITED: Final = "nodes/head_node.sh"
_AFTER: Final = "use_system\n"
SECONDS_TO_END: Final = 120
"""How long a command may take to end after it was told to."""
_SHOWN: Final = 300
"""Characters of a word of a command line that is shown: longer ones are programs."""
_TIME_UP: Final = "its time limit is over"
_LOGS: Final = "AWS::Logs::LogGroup"
_LAST: Final = 2000
"""Characters of a command's output that a message has."""


class RungError(RuntimeError):
    """A rung did not come to its end; the message says why."""


class TimeUpError(RungError):
    """The time limit of a rung is over."""


class Ran(NamedTuple):
    """A command that has ended.

    Attributes:
        code: Its exit code.
        output: Its standard output.
        errors: Its standard error.
        seconds: How long it took.
        log: Where both are kept, a path below the report's folder.
    """

    code: int
    output: str
    errors: str
    seconds: float
    log: str

    @property
    def text(self) -> str:
        """Both outputs."""
        return f"{self.output}\n{self.errors}"

    def json(self) -> Any:
        """Return its standard output as JSON; an empty object: it is none."""
        try:
            return json.loads(self.output)
        except ValueError:
            return {}


@dataclass
class Walk:
    """One walk, in a folder of its own.

    Attributes:
        name: Of the deployment.
        raw: What its settings file says.
        folder: Has the copy of the checkout, the settings and the report.
        choices: What the settings of rungs depend on.
        is_emulated: Whether there is an emulated AWS, which cannot show all.
        redactor: What takes out of logs what must not be shown.
        say: Takes messages for people.
        record: Takes observations.
        clock: The time.
        deadline: When the rung must have ended; None: there is no limit.
    """

    name: str
    raw: Raw
    folder: Path
    choices: Choices
    is_emulated: bool
    redactor: Redactor
    say: Say
    record: Callable[[Observation], None]
    clock: Clock = field(default_factory=Clock)
    deadline: datetime | None = None
    _last: tuple[str, Path] = ("", Path())
    _waits: bool = False

    # --- the folder ---

    @property
    def config(self) -> Path:
        """The folder of its settings file."""
        return self.folder / "settings"

    @property
    def report(self) -> Path:
        """The folder of what may be shown to others."""
        return self.folder / "report"

    @property
    def file(self) -> Path:
        """Its settings file."""
        return self.config / f"{self.name}.yaml"

    @property
    def settings(self) -> Settings:
        """The settings as they are now."""
        return load(self.file)

    @property
    def deployment(self) -> Deployment:
        """The deployment as it is now; AWS is asked again."""
        return Deployment(self.name, self.settings)

    @property
    def large(self) -> tuple[str, str]:
        """Queue and compute resource of trn1.32xlarge."""
        queue = self.raw["cluster"]["queues"][0]
        return str(queue["name"]), str(queue["compute_resources"][0]["name"])

    def write(self, step: str, *, grown: bool = True, interface: Interface = "efa-only") -> Settings:
        """Write the settings of a rung, and return them.

        Raises:
            SettingsError: They cannot be used.
        """
        made = settings_of(self.raw, step, self.choices, grown=grown, interface=interface)
        head = f"# Of config/{self.name}.yaml, for the rung {step} of ./ultracluster prove, which replaces this file.\n"
        self.config.mkdir(parents=True, exist_ok=True)
        self.file.write_text(head + yaml.safe_dump(made, sort_keys=False), encoding="utf-8")
        return self.settings

    def copy_checkout(self) -> None:
        """Copy what is deployed, so that nothing that is edited here meanwhile goes into the account, nor back."""
        target = self.folder / "checkout"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(ROOT, target, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        for name in _LINKED:
            (target / name).symlink_to(ROOT / name)

    def edit_script(self, line: str) -> None:
        """Add a line to the head node's script in the copy; empty: have it as it is in the checkout."""
        text = (ROOT / EDITED).read_text(encoding="utf-8")
        edited = text.replace(_AFTER, f"{_AFTER}{line}\n", 1) if line else text
        (self.folder / "checkout" / EDITED).write_text(edited, encoding="utf-8")

    # --- commands ---

    def run(self, *words: str, codes: Collection[int] | None = (ExitCode.DONE,)) -> Ran:
        """Run `./ultracluster WORDS` to its end.

        Raises:
            RungError: Its exit code is none of these; None: any will do.
            TimeUpError: The rung's time is over; the command was ended.
        """
        ran = self._run(["./ultracluster", *words], [sys.executable, "-P", "-m", "scripts", *words])
        if codes is not None and ran.code not in codes:
            raise RungError(f"./ultracluster {shlex.join(words)}: exit code {ran.code}, {ran.log}")
        return ran

    def cdk(self, *words: str) -> None:
        """Run the CDK to its end, with the settings as they are now.

        Raises:
            RungError: It failed.
        """
        of_app = ("--context", f"env={self.config / self.name}", "--require-approval", "never", "--progress", "events")
        ran = self._run(["cdk", *words], ["cdk", "--no-notices", *words, *of_app])
        if ran.code != ExitCode.DONE:
            raise RungError(f"cdk {shlex.join(words)}: exit code {ran.code}, {ran.log}")

    def on_head_node(self, script: str, *, user: str = "", minutes: int = 20) -> Ran:
        """Run a script on the head node in a login shell, and return what it says, whatever its exit code."""
        of_user = ("--user", user) if user else ()
        words = ("exec", self.name, "--timeout", str(minutes), *of_user, "-o", "json", "--", "bash", "-c", script)
        ran = self.run(*words, codes=None)
        answer = ran.json()
        return ran._replace(output=answer.get("stdout", ""), errors=answer.get("stderr", "") or ran.errors)

    def end_jobs(self, minutes: int) -> None:
        """Let the head node cancel all jobs from a time on, even if this computer is gone by then; 0: not any more.

        Raises:
            RungError: It does not answer that it will.
        """
        words = of_file(END_JOBS, str(minutes))
        ran = self.run("exec", self.name, "--user", "root", "-o", "json", "--", *words, codes=None)
        if ran.code != ExitCode.DONE:
            raise RungError(f"the head node does not watch the time of jobs, {ran.log}")

    def slurm(self, command: str) -> str:
        """Return what a command of Slurm prints on the head node."""
        return self.on_head_node(f"PATH=/opt/slurm/bin:$PATH; {command}").output.strip()

    def until(self, condition: Callable[[], bool], *, minutes: float, every: float = 30) -> bool:
        """Wait until something is so, and return whether it was in time.

        Raises:
            TimeUpError: The rung's time is over.
        """

        def check() -> bool:
            self.check_time()
            return condition()

        self._waits = True
        try:
            return self.clock.until(check, every=every, limit=minutes * 60)
        finally:
            self._waits = False

    def check_time(self) -> None:
        """Raise TimeUpError if the rung's time is over."""
        if self.deadline is not None and self.clock.now() >= self.deadline:
            raise TimeUpError(_TIME_UP)

    def _run(self, shown: list[str], words: list[str]) -> Ran:
        self.check_time()
        line = " ".join(shlex.quote(each) if len(each) <= _SHOWN else "..." for each in shown)
        is_again = self._waits and line == self._last[0]
        if not is_again:
            self.say(f"  $ {line}")
        log = self._last[1] if is_again else self._new_log(shown)  # of what is waited for the last answer is kept
        started = time.monotonic()
        code, output, errors = self._processed(words)
        seconds = time.monotonic() - started
        text = f"$ {line}\n{output}\n{errors}\nexit code {code} after {seconds:.0f} s\n"
        self.keep(log, text)
        self._last = (line, log)
        if not is_again:
            self.say(f"    exit code {code} after {seconds:.0f} s, {log}")
        return Ran(code, output, errors, seconds, str(log))

    def _new_log(self, shown: list[str]) -> Path:
        number = len(list((self.report / "logs").glob("*.txt"))) + 1
        words = [each.replace("/", "_") for each in shown[:3] if not each.startswith("./")]
        return Path("logs") / f"{number:03}-{'-'.join(words)}.txt"

    def keep(self, log: Path, text: str) -> None:
        """Keep a text in the report's folder, without what must not be shown."""
        path = self.report / log
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.redactor.text(text), encoding="utf-8")

    def _processed(self, words: list[str]) -> tuple[int, str, str]:
        """Run a program until it ends, or is ended with the rung, and return exit code and outputs.

        A signal ends it, too: Ctrl-C of a terminal reaches both.
        """
        interrupts.check()
        raw = self.folder / "running"
        with (raw.with_suffix(".out")).open("w+") as out, (raw.with_suffix(".err")).open("w+") as err:
            process = subprocess.Popen(
                words, cwd=self.folder / "checkout", env=self._environment(), stdin=subprocess.DEVNULL,
                stdout=out, stderr=err, text=True,
            )  # fmt: skip
            with interrupts.ending_together(process):
                try:
                    self._await(process)
                except BaseException:
                    _end(process)
                    raise
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read())
        return process.returncode, texts[0], texts[1]

    def _await(self, process: subprocess.Popen[str]) -> None:
        while True:
            left = None if self.deadline is None else (self.deadline - self.clock.now()).total_seconds()
            if left is not None and left <= 0:
                raise TimeUpError(_TIME_UP)
            try:
                process.wait(timeout=None if left is None else min(left, 60))
            except subprocess.TimeoutExpired:
                continue
            return

    def _environment(self) -> dict[str, str]:
        checkout = self.folder / "checkout"
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        return {
            **os.environ,
            "PATH": path,
            "CDK_DISABLE_CLI_TELEMETRY": "1",
            "PYTHONPATH": os.pathsep.join([str(checkout), str(checkout / "constructs")]),
            "ULTRACLUSTER_CONFIG": str(self.config),
        }

    # --- AWS ---

    def head_node(self) -> Mapping[str, Any]:
        """Return the head node as EC2 describes it.

        Raises:
            RungError: There is none, or more than one.
        """
        nodes = [each for each in self.deployment.nodes() if is_head_node(each)]
        if len(nodes) != 1:
            raise RungError(f"there are {len(nodes)} head nodes")
        return nodes[0]

    def compute_nodes(self) -> list[dict[str, Any]]:
        """Return the compute nodes that are not terminated, as EC2 describes them."""
        return compute_fleet.instances(self.deployment)

    def terminate_nodes(self) -> None:
        """Let EC2 terminate the compute nodes: from then on they cost nothing.

        https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-lifecycle.html
        """
        if nodes := [each["InstanceId"] for each in self.compute_nodes()]:
            self.deployment.account.client("ec2").terminate_instances(InstanceIds=nodes)

    def kept(self) -> list[Leftover]:
        """Return what deleted stacks of this name have left on purpose, or holds data, but for logs, which stay.

        Raises:
            botocore.exceptions.ClientError: AWS refuses to list it.
        """
        return [each for each in leftovers.find(self.deployment) if not each.is_swept and each.type != _LOGS]

    def status_of(self, part: str) -> str:
        """Return the status of a part's stack; empty: there is none."""
        deployment = self.deployment
        return str((deployment.stack(deployment.stack_name(part)) or {}).get("StackStatus", ""))

    # --- what is seen ---

    def observe(self, name: str, *, good: bool, seen: str, logs: Collection[str] = ()) -> None:
        """Record what was seen of an assumption, unless an emulated AWS cannot show it."""
        if not self.is_emulated or by_id(name).emulated:
            self._record(name, "as expected" if good else "differs", seen, logs)

    def pass_over(self, name: str, why: str) -> None:
        """Record why an assumption could not be looked at."""
        if not self.is_emulated or by_id(name).emulated:
            self._record(name, "not looked at", why, ())

    def _record(self, name: str, outcome: Outcome, seen: str, logs: Collection[str]) -> None:
        assumption = by_id(name)
        text = self.redactor.text(" ".join(seen.split()))[:_LAST]
        self.say(f"  {name}: {outcome}: {text}")
        time_seen = None if outcome == "not looked at" else self.clock.now()
        self.record(
            Observation(
                id=name, rung=assumption.rung, expected=assumption.expected, outcome=outcome, seen=text,
                logs=tuple(logs), time=time_seen,
            )
        )  # fmt: skip


def _end(process: subprocess.Popen[str]) -> None:
    """End a program: it gets time to stop as it does after a signal."""
    process.terminate()
    try:
        process.wait(SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
