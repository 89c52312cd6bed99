"""A walk: which rung is next, whether the limit has room for it, the question, and the end of it."""

from __future__ import annotations

import getpass
import os
import secrets
import select
import shutil
import socket
import sys
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Final, Literal

from botocore.exceptions import BotoCoreError, ClientError

from config import users_file
from config.settings import Settings
from scripts.account.deployment import session
from scripts.core import interrupts, markdown, options
from scripts.core.errors import CliError, OperationError, UnusableError
from scripts.core.figures import dollars, duration
from scripts.core.text import echo
from scripts.core.versions import versions
from scripts.emulated import accounts
from scripts.rehearse.prove import ladder, money, store
from scripts.rehearse.prove.ladder import NAMES, RUNGS, Choices, Raw, Rung
from scripts.rehearse.prove.money import Rates, Span, spent
from scripts.rehearse.prove.redact import ROLE, Redactor, names_in
from scripts.rehearse.prove.report import Observation, Proof, RungRecord, RungState, unseen
from scripts.rehearse.prove.rungs import CLIMBED
from scripts.rehearse.prove.walk import END_JOBS_UNIT, SECONDS_TO_END, RungError, TimeUpError, Walk

_COMPUTED: Final = frozenset(Proof.model_computed_fields)
_NOTHING: Final = Decimal(0)
_NODES_HERE: Final = 2
_FEW_MINUTES: Final = 1
_MINUTES_AFTER: Final = 5
"""How long a failed rung may still ask for what is kept of it, and nodes are stopped after a signal."""
_SECONDS_TO_LOOK: Final = 30.0


@dataclass(frozen=True)
class Request:
    """What is asked of a walk.

    Attributes:
        name: Of the deployment.
        limit: Dollars that are never exceeded.
        until: The last rung before everything is destroyed.
        is_emulated: Whether it is in an emulated AWS.
    """

    name: str
    limit: Decimal
    until: str
    is_emulated: bool

    @property
    def folder(self) -> Path:
        """The folder of the walk."""
        return options.BUILD / f"prove-{self.name}{'-emulated' if self.is_emulated else ''}"


def raw_of(name: str) -> Raw:
    """Return what a settings file says, with its file of people, from which a ladder can be made.

    Raises:
        SettingsError: The settings cannot be used.
        UnusableError: No ladder can be made of them; the message has all reasons.
    """
    options.settings_of(name)
    raw: Raw = users_file.Sources.read(options.settings_file(name)).value
    if broken := ladder.violations(raw):
        lines = "\n  ".join(broken)
        raise UnusableError(
            f"{options.shown(options.settings_file(name))} is for no walk from one node to 16:\n  {lines}"
        )
    return raw


def prove(request: Request, *, starts_again: bool = False) -> Proof:
    """Walk up the ladder, asking before each rung, and return the report.

    Args:
        request: What is asked.
        starts_again: Whether an earlier report of this folder is replaced.

    Raises:
        OperationError: There is a deployment that this walk did not make, or an earlier report that is complete.
        UnusableError: The settings or the limit cannot be used.
    """
    raw = raw_of(request.name)
    if not request.is_emulated:
        return Climb.of(request, raw, starts_again=starts_again).climb()
    shutil.rmtree(request.folder, ignore_errors=True)
    with accounts.account(tell) as account:
        variables = {**account.aws.environment, **accounts.variables(raw["region"])}
        with _environment(variables):
            climb = Climb.of(request, raw, starts_again=True)
            settings = climb.walk.write("sixteen-nodes")
            accounts.create_prerequisites(account.aws, settings)
            accounts.bootstrap(account.aws, settings)
            if not account.machines:
                climb.last = "storage"
            return climb.climb()


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Have variables in this process's environment, in which boto3 and the commands look for their account."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class Climb:
    """A walk up the ladder."""

    def __init__(self, request: Request, walk: Walk, proof: Proof, subject: Mapping[str, str] | None = None) -> None:
        self.request, self.walk, self.proof, self.subject = request, walk, proof, subject or {}
        self.last = request.until
        walk.record = self._record

    @classmethod
    def of(cls, request: Request, raw: Raw, *, starts_again: bool) -> Climb:
        """Return a new walk, or the one that an earlier report is of.

        Raises:
            OperationError: The report is complete, or what it is of stands and would be forgotten, or is of another
                account, name, Region or zone.
        """
        folder, caller, settings = request.folder, _caller(raw["region"]), Settings.model_validate(raw)
        subject = store.subject_of(settings, caller["Account"])
        kept = store.read(folder)
        earlier = kept.proof if kept else None
        if kept and kept.proof.is_standing:
            store.check_same(folder, kept.subject, subject, starts_again=starts_again)
        elif earlier and not starts_again and earlier.rung("destroy"):
            raise OperationError(
                f"{folder}/report is complete: everything is destroyed", "--start-again replaces it by another walk"
            )
        elif earlier and starts_again:
            shutil.rmtree(folder / "report", ignore_errors=True)
            earlier = kept = None
        few = (_NODES_HERE, _FEW_MINUTES) if request.is_emulated else ()
        redactor = Redactor(kept.salt if kept else secrets.token_hex(16), _private(settings, caller))
        is_emulated = "AWS_ENDPOINT_URL" in os.environ
        walk = Walk(request.name, raw, folder, Choices(request.limit, *few), is_emulated, redactor, tell, _nowhere)
        cloud: Literal["aws", "emulated"] = "emulated" if is_emulated else "aws"
        proof = earlier or Proof(
            deployment=request.name,
            region=raw["region"],
            zone_id=raw["zone_id"],
            cloud=cloud,
            versions=versions().model_dump(by_alias=True),
            limit_usd=request.limit,
            observations=unseen(cloud),
        )
        return cls(request, walk, proof.model_copy(update={"limit_usd": request.limit}), subject)

    # --- the walk ---

    def climb(self) -> Proof:
        """Climb from the first rung that is not done, and destroy everything at the end unless that is refused."""
        self._refuse_strangers()
        self.walk.copy_checkout()
        with self._saying_what_stands():
            self._stop_left_nodes()
        self._check_room()
        with self._saying_what_stands():
            self._rungs()
            self._end()
        self._save()
        return self.proof

    @contextmanager
    def _saying_what_stands(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._save()
            self._say_what_stands()
            raise

    def _left(self) -> list[Rung]:
        """Return the rungs that are to be climbed, and are not done."""
        reached = [each for each in RUNGS[: NAMES.index(self.last) + 1] if each.name != "destroy"]
        done = {each.name for each in self.proof.rungs if each.state == "done"}
        return [each for each in reached if each.name not in done]

    def _rungs(self) -> None:
        for rung in self._left():
            rates = self._rates(rung)
            if not (why := self._refusal(rung, rates)):
                if not self._agreed(rung, rates):
                    self._note(rung, "declined", rates, "the answer was no, or there was none in time")
                    return
                why = self._refusal(rung, rates)  # to wait for an answer has a cost, too
            if why:
                self._note(rung, "refused", rates, why)
                return
            if not self._climbed(rung, rates):
                return

    def _climbed(self, rung: Rung, rates: Rates) -> bool:
        """Climb one rung, and return whether it came to its end; its nodes are stopped in any case."""
        deadline = self.walk.clock.now() + timedelta(minutes=rung.minutes)
        try:
            state = self._tried(rung, rates, deadline)
            stopped_by = min(self.walk.clock.now(), deadline) + timedelta(minutes=money.MINUTES_TO_STOP)
            is_stopped = not rung.nodes or self._stop_nodes(stopped_by)
        except KeyboardInterrupt:
            if rung.nodes:
                self._stop_nodes_despite_signals(rates)
            raise
        if not is_stopped:
            self._count(rates.hourly)
            self._destroy()
            return False
        self._count(rates.standing if self._standing_stacks() else _NOTHING)
        if state != "done":
            self._keep_evidence(stopped_by)
        return self._jobs_may_run(rung) and state == "done"

    def _tried(self, rung: Rung, rates: Rates, deadline: datetime) -> RungState:
        """Climb one rung until its time is over, and return how it ended."""
        started = self.walk.clock.now()
        self._count(rates.hourly, rates.by_use, *([self._end_of_nodes(deadline, rates)] if rung.nodes else []))
        self.walk.deadline = deadline
        record = RungRecord(
            name=rung.name, state="running", worst_usd=money.worst(rates, rung.minutes), started=started
        )
        self._put(record)
        state: RungState = "stopped"
        reason = "by a signal"
        try:
            if rung.nodes:
                self.walk.end_jobs(rung.minutes)
            CLIMBED[rung.name](self.walk)
            state, reason = "done", ""
        except TimeUpError as error:
            reason = str(error)
        except Exception as error:
            state, reason = "failed", _said(error)
        finally:
            self.walk.deadline = None
            ended = self.walk.clock.now()
            reason = self.walk.redactor.text(reason)
            self._put(record.model_copy(update={"state": state, "reason": reason, "ended": ended}))
        if state != "done":
            tell(f"The rung {rung.name} {'failed' if state == 'failed' else 'was stopped'}: {reason}")
        return state

    def _jobs_may_run(self, rung: Rung) -> bool:
        """Let the head node cancel jobs no more, and return whether it said that it does not."""
        if not rung.nodes:
            return True
        try:
            self.walk.end_jobs(0)
        except RungError as error:
            tell(f"The head node still cancels all jobs when the time of {rung.name} is over: {error}")
            return False
        return True

    def _end(self) -> None:
        """Destroy everything, unless somebody who is asked wants to keep it."""
        if not self.proof.is_standing:
            return
        minutes = self._minutes_left()
        question = (
            f"Destroy everything now? It costs {dollars(self._rate())} an hour until then. Enter is yes; no answer in "
            f"{duration(minutes * 60)} is yes, because the limit has no room for more.\n"
            "no: keep it, and the limit holds no more once this command has ended. [Y/n] "
        )
        if not self.request.is_emulated and answered(question, minutes * 60) in ("n", "no"):
            self._say_what_stands()
            return
        self._destroy()

    def _destroy(self) -> None:
        """Delete everything; there is no limit that could forbid it, nor a price that is not known."""
        started = self.walk.clock.now()
        record = RungRecord(name="destroy", state="running", worst_usd=money.to_destroy(self._rate()), started=started)
        self._put(record)
        state: RungState = "stopped"
        reason = "by a signal"
        try:
            CLIMBED["destroy"](self.walk)
            state, reason = "done", ""
            self._count(_NOTHING)
        except Exception as error:
            state, reason = "failed", self.walk.redactor.text(_said(error))
        finally:
            self._put(record.model_copy(update={"state": state, "reason": reason, "ended": self.walk.clock.now()}))
        if state != "done":
            self._say_what_stands()

    def _stop_nodes(self, by: datetime) -> bool:
        """Stop the fleet, what is left of it by EC2 itself, and return whether it has no compute nodes any more.

        Args:
            by: When that must be so. ParallelCluster gets half of the time.
        """
        clock = self.walk.clock
        self.walk.deadline = clock.now() + (by - clock.now()) / 2
        try:
            with suppress(RungError):
                self.walk.run("fleet", "stop", self.walk.name, "--yes", "--force", codes=None)
        finally:
            self.walk.deadline = None
        if self._has_no_nodes():
            return True
        with suppress(BotoCoreError, ClientError):
            self.walk.terminate_nodes()
        return clock.until(self._has_no_nodes, every=15, limit=(by - clock.now()).total_seconds())

    def _has_no_nodes(self) -> bool:
        """Return whether EC2 says that there are no compute nodes; without an answer there may be some."""
        try:
            return not self.walk.compute_nodes()
        except (BotoCoreError, ClientError):
            return False

    def _stop_nodes_despite_signals(self, rates: Rates) -> None:
        """Stop nodes after a signal; their cost is what somebody stops a walk for."""
        with interrupts.uninterrupted():
            tell(f"\nStopping the nodes, for {_MINUTES_AFTER} minutes at most.", err=True)
            if self._stop_nodes(self.walk.clock.now() + timedelta(minutes=_MINUTES_AFTER)):
                self._count(rates.standing)

    def _stop_left_nodes(self) -> None:
        """Stop nodes that an earlier command has left, and that the head node has not ended."""
        spans = self.proof.spans
        if not (spans and spans[-1].assumed and self.walk.compute_nodes()):
            return
        tell("Nodes of an earlier command run still. They are stopped first.")
        self.proof = self.proof.model_copy(update={"spans": money.with_nodes(spans)})
        if not self._stop_nodes(self.walk.clock.now() + timedelta(minutes=money.MINUTES_TO_STOP)):
            raise OperationError("nodes do not end", self._destroying)
        self._count(spans[-1].usd_per_hour)

    def _keep_evidence(self, by: datetime) -> None:
        """Keep what a person should keep of a step that differs, and what may be the reason."""
        latest = self.walk.clock.now() + timedelta(minutes=_MINUTES_AFTER)
        self.walk.deadline = min(latest, by - timedelta(seconds=SECONDS_TO_END))
        with suppress(RungError):
            for command in ("status", "diagnose", "inventory"):
                self.walk.run(command, self.walk.name, codes=None)
        self.walk.deadline = None

    # --- what it may cost ---

    def _rates(self, rung: Rung) -> Rates:
        settings = self.walk.write(rung.name)
        rates = money.rates_of(settings, rung, self.walk.choices.nodes_of(rung, self.walk.large))
        self.proof = self.proof.model_copy(update={"prices": rates.source})
        return rates

    def _spent(self) -> Decimal:
        return spent(self.proof.spans, self.walk.clock.now())

    def _rate(self) -> Decimal:
        return money.rate(self.proof.spans, self.walk.clock.now())

    def _minutes_left(self) -> float:
        """Return how long what stands may wait for an answer."""
        return money.minutes_left(self.request.limit, self._spent(), self._rate())

    def _refusal(self, rung: Rung, rates: Rates) -> str:
        """Return why the limit has no room for a rung now; empty: it has."""
        return money.refusal(self.request.limit, self._spent(), rates, rung.minutes)

    def _check_room(self) -> None:
        """Refuse to continue where all would be destroyed before anybody could answer.

        Raises:
            OperationError: The limit has no room; nothing was changed.
        """
        if not self.proof.is_standing:
            return
        why = next((self._refusal(rung, self._rates(rung)) for rung in self._left()[:1]), "")
        if not why and self._minutes_left() < money.MINUTES_TO_ANSWER:
            least = self._spent() + money.to_destroy(self._rate()) + self._rate()
            why = f"{dollars(self._spent())} is spent of {dollars(self.request.limit)}: {money.needed(least)}"
        if why:
            raise OperationError(f"the limit has no room to continue: {why}", f"or delete all: {self._destroying}")

    def _end_of_nodes(self, deadline: datetime, rates: Rates) -> Span:
        """Return from when on a rung's nodes cost nothing even if nobody stops them."""
        since = deadline + timedelta(minutes=money.MINUTES_TO_STOP)
        return Span(since=since, usd_per_hour=rates.standing, assumed=True)

    def _count(self, usd_per_hour: Decimal, once: Decimal = _NOTHING, *later: Span) -> None:
        """Count costs at another rate from now on."""
        now = self.walk.clock.now()
        span = Span(since=now, usd_per_hour=usd_per_hour, once_usd=once)
        spans = (*money.until(self.proof.spans, now), span, *later)
        self.proof = self.proof.model_copy(update={"spans": spans})
        self._save()

    def _agreed(self, rung: Rung, rates: Rates) -> bool:
        """Ask before a rung; the question ends when waiting for an answer would cost what the limit has."""
        tell(f"\n{NAMES.index(rung.name) + 1}. {rung.title}\nIt {rung.does}.")
        tell(money.announcement(rates, rung.minutes, self._spent(), self.request.limit))
        if self.request.is_emulated:
            return True
        seconds = None
        if self.proof.is_standing:
            seconds = self._minutes_left() * 60
        return answered(f"Type {rung.name} to start it; anything else ends the walk: ", seconds) == rung.name

    # --- what is known ---

    def _refuse_strangers(self) -> None:
        """Refuse to touch a deployment that this walk did not make, and what is left of one: the end deletes it."""
        self.walk.write("storage", grown=self.proof.is_standing)
        if self.proof.is_standing:
            return
        hint = "another `name` in the settings"
        if standing := self._standing_stacks():
            raise OperationError(f"{', '.join(standing)}: not made by this walk, which deletes all it finds", hint)
        if kept := self.walk.kept():
            raise OperationError(
                f"{', '.join(each.id for each in kept)}: left by an earlier deployment of this name; a walk deletes "
                "all it finds, without a backup",
                hint,
            )

    def _standing_stacks(self) -> list[str]:
        """Return the names of the deployment's stacks that exist."""
        settings = self.walk.settings
        return [settings.stack_name(part) for part in settings.parts if self.walk.status_of(part)]

    def _say_what_stands(self) -> None:
        """Say what exists, what it costs, and the command that deletes it."""
        if not self.proof.is_standing:
            tell("Nothing was created.", err=True)
            return
        if self.request.is_emulated:
            return  # what exists in the emulated AWS is gone with it
        nodes = 0
        with suppress(Exception):  # AWS may not answer now; the commands below are right all the same
            stacks, nodes = self._standing_stacks(), len(self.walk.compute_nodes())
            tell(
                f"These stacks exist: {', '.join(stacks) or 'none'}; nodes: {nodes}. "
                "CloudFormation continues what it has started.",
                err=True,
            )
        config, name = f"ULTRACLUSTER_CONFIG={self.walk.config}", self.request.name
        commands = [
            *([f"{config} ./ultracluster fleet stop {name} --force  # first: ends all nodes"] if nodes else []),
            f"./ultracluster prove {name} --max-usd {self.request.limit:f}  # continues",
            self._destroying,
        ]
        if any(ladder.rung(each.name).nodes and each.started for each in self.proof.rungs):
            switch_off = f"exec {name} --user root -- systemctl disable --now {END_JOBS_UNIT}"
            commands.append(f"{config} ./ultracluster {switch_off}  # if you keep the cluster: lets jobs run")
        tell(
            f"What exists costs {dollars(self._rate())} an hour at most. No command watches the limit now. The head "
            "node cancels all jobs, new ones, too, once the time of a step that was stopped is over.\n\n  "
            + "\n  ".join(commands),
            err=True,
        )

    @property
    def _destroying(self) -> str:
        """The command that deletes everything."""
        return (
            f"ULTRACLUSTER_CONFIG={self.walk.config} ./ultracluster destroy {self.request.name} --all --unprotect "
            "--no-final-backup --sweep --force"
        )

    def _record(self, observation: Observation) -> None:
        self.proof = self.proof.with_observation(observation)
        self._save()

    def _put(self, record: RungRecord) -> None:
        self.proof = self.proof.with_rung(record)
        self._save()

    def _note(self, rung: Rung, state: RungState, rates: Rates, reason: str) -> None:
        tell(f"{rung.name}: {reason}.")
        self._put(RungRecord(name=rung.name, state=state, reason=reason, worst_usd=money.worst(rates, rung.minutes)))

    def _save(self) -> None:
        """Write what the walk continues from, and the report, as JSON and as Markdown, each as a whole."""
        self.proof = self.proof.model_copy(update={"time": self.walk.clock.now()})
        kept = store.Kept(salt=self.walk.redactor.salt, subject=self.subject, proof=self.proof)
        self.walk.report.mkdir(parents=True, exist_ok=True)
        store.replace(self.walk.folder / store.FILE, kept.model_dump_json(exclude={"proof": {*_COMPUTED}}), mode=0o600)
        shown = self.proof.redacted(self.walk.redactor.text)
        store.replace(self.walk.report / "report.json", shown.to_json() + "\n")
        text = markdown.joined(markdown.of_blocks(shown.page()))
        store.replace(self.walk.report / "report.md", f"# What only AWS can confirm\n\n{text}\n")


def tell(text: str = "", *, end: str = "\n", err: bool = False) -> None:
    """Print text, if anybody still reads it: without a reader nodes are stopped all the same."""
    with suppress(OSError):
        echo(text, err=err, end=end)


def answered(question: str, seconds: float | None) -> str:
    """Ask, and return the answer; empty: there was none in time, or the input ended."""
    interrupts.check()
    with suppress(OSError, termios.error):  # what was typed before is no answer
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
    tell(question, end="", err=True)
    end = None if seconds is None else datetime.now(UTC) + timedelta(seconds=seconds)
    while True:  # select's clock stands still while a computer sleeps
        left = _SECONDS_TO_LOOK if end is None else min((end - datetime.now(UTC)).total_seconds(), _SECONDS_TO_LOOK)
        if select.select([sys.stdin], [], [], max(left, 0))[0]:
            return sys.stdin.readline().strip().lower()
        if left <= 0:
            tell("", err=True)
            return ""


def _said(error: Exception) -> str:
    """Return what an error says, with its kind where that is not one of ours."""
    return str(error) if isinstance(error, RungError | CliError) else f"{type(error).__name__}: {error}"


def _caller(region: str) -> Mapping[str, str]:
    """Return account and ARN of the credentials in use."""
    identity: Mapping[str, str] = session().client("sts", region_name=region).get_caller_identity()
    return identity


def _private(settings: Settings, caller: Mapping[str, str]) -> tuple[str, ...]:
    """Return words that a report must not have."""
    host, user = socket.gethostname(), getpass.getuser()
    words = [
        caller["Account"],
        *names_in(caller["Arn"]),
        *(host, host.partition(".")[0], str(Path.home()), str(options.ROOT)),
        *([] if user == "root" else [user]),
        *(each.name for each in settings.users),
        *settings.monitoring.emails,
        *settings.emails_of_budget,
    ]
    dumped = settings.model_dump_json()
    words += [name for arn in ROLE.findall(dumped) for name in names_in(arn)]
    return tuple(sorted({each for each in words if each not in ("", "/")}))


def _nowhere(_: Observation) -> None:
    """Take an observation before there is a report."""
