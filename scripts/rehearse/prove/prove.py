"""A walk: which rung is next, whether the limit has room for it, the question, and the end of it."""

from __future__ import annotations

import getpass
import json
import os
import secrets
import select
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Final, Literal

from config.yaml_text import decode, parse
from scripts.account.deployment import session
from scripts.core import interrupts, markdown, options
from scripts.core.errors import CliError, OperationError, UnusableError
from scripts.core.figures import dollars, duration
from scripts.core.text import echo
from scripts.core.versions import versions
from scripts.emulated import accounts
from scripts.rehearse.prove import ladder, money
from scripts.rehearse.prove.ladder import NAMES, RUNGS, Choices, Raw, Rung
from scripts.rehearse.prove.money import Rates, Span, spent
from scripts.rehearse.prove.redact import Redactor, private_words
from scripts.rehearse.prove.report import Observation, Proof, RungRecord, RungState, unseen
from scripts.rehearse.prove.rungs import CLIMBED
from scripts.rehearse.prove.walk import RungError, TimeUpError, Walk

_COMPUTED: Final = frozenset(Proof.model_computed_fields)
_KEPT: Final = "private.json"
_NOTHING: Final = Decimal(0)
_NODES_HERE: Final = 2
_FEW_MINUTES: Final = 1
_MINUTES_AFTER: Final = 5
"""How long a failed rung may still ask for what is kept of it."""


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
    """Return what a settings file says, from which a ladder can be made.

    Raises:
        SettingsError: The settings cannot be used.
        UnusableError: No ladder can be made of them; the message has all reasons.
    """
    options.settings_of(name)
    raw: Raw = parse(decode((options.CONFIG / f"{name}.yaml").read_bytes())).value
    if broken := ladder.violations(raw):
        lines = "\n  ".join(broken)
        raise UnusableError(f"config/{name}.yaml is for no walk from one node to 16:\n  {lines}")
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

    def __init__(self, request: Request, walk: Walk, proof: Proof) -> None:
        self.request, self.walk, self.proof = request, walk, proof
        self.last = request.until
        walk.record = self._record

    @classmethod
    def of(cls, request: Request, raw: Raw, *, starts_again: bool) -> Climb:
        """Return a new walk, or the one that an earlier report is of.

        Raises:
            OperationError: The report is complete, what it is of stands and would be forgotten, or it is of another
                account.
        """
        folder, account = request.folder, _account(raw["region"])
        earlier = _earlier(folder)
        if earlier and earlier.is_standing:
            _check_same(folder, account, starts_again=starts_again)
        elif earlier and not starts_again and earlier.rung("destroy"):
            raise OperationError(
                f"{folder}/report is complete: everything is destroyed", "--start-again replaces it by another walk"
            )
        elif earlier and starts_again:
            shutil.rmtree(folder / "report")
            earlier = None
        few: tuple[int, int | None] = (_NODES_HERE, _FEW_MINUTES) if request.is_emulated else (ladder.MANY, None)
        redactor = Redactor(_salt(folder, account), private_words(_private(raw, account)))
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
        return cls(request, walk, proof.model_copy(update={"limit_usd": request.limit}))

    # --- the walk ---

    def climb(self) -> Proof:
        """Climb from the first rung that is not done, and destroy everything at the end unless that is refused."""
        self._refuse_strangers()
        self.walk.copy_checkout()
        try:
            self._rungs()
            self._end()
        except BaseException:
            self._save()
            self._say_what_stands()
            raise
        self._save()
        return self.proof

    def _rungs(self) -> None:
        for rung in RUNGS[: NAMES.index(self.last) + 1]:
            if rung.name == "destroy":
                return
            record = self.proof.rung(rung.name)
            if record and record.state == "done":
                continue
            rates = self._rates(rung)
            why = money.refusal(self.request.limit, self._spent(), rates, rung.minutes)
            if why:
                self._note(rung, "refused", rates, why)
                return
            if not self._agreed(rung, rates):
                self._note(rung, "declined", rates, "the answer was no, or there was none in time")
                return
            if not self._climbed(rung, rates):
                return

    def _climbed(self, rung: Rung, rates: Rates) -> bool:
        """Climb one rung, and return whether it came to its end; its nodes are stopped in any case."""
        started = self.walk.clock.now()
        self._count(rates.hourly, rates.by_use)
        self.walk.deadline = started + timedelta(minutes=rung.minutes)
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
            state, reason = "failed", f"{'' if isinstance(error, RungError) else f'{type(error).__name__}: '}{error}"
        finally:
            self.walk.deadline = None
            ended = self.walk.clock.now()
            reason = self.walk.redactor.text(reason)
            self._put(record.model_copy(update={"state": state, "reason": reason, "ended": ended}))
        if state != "done":
            tell(f"The rung {rung.name} {'failed' if state == 'failed' else 'was stopped'}: {reason}")
            self._keep_evidence()
        if rung.nodes and not self._stop_nodes():
            self._destroy()
            return False
        self._count(rates.standing if self._standing_stacks() else _NOTHING)
        if rung.nodes:
            self.walk.end_jobs(0)
        return state == "done"

    def _end(self) -> None:
        """Destroy everything, unless somebody who is asked wants to keep it."""
        if not self.proof.is_standing:
            return
        minutes = money.minutes_left(self.request.limit, self._spent(), self.proof.spans[-1].usd_per_hour)
        rate = dollars(self.proof.spans[-1].usd_per_hour)
        question = (
            f"Destroy everything now? It costs {rate} an hour until then. Enter is yes; no answer in "
            f"{duration(minutes * 60)} is yes, because the limit has no room for more.\n"
            "no: keep it, and the limit holds no more once this command has ended. [Y/n] "
        )
        if not self.request.is_emulated and answered(question, minutes * 60) in ("n", "no"):
            self._say_what_stands()
            return
        self._destroy()

    def _destroy(self) -> None:
        """Delete everything; there is no limit that could forbid it."""
        rung = ladder.rung("destroy")
        rates = self._rates(rung)
        started = self.walk.clock.now()
        record = RungRecord(
            name=rung.name, state="running", worst_usd=money.to_destroy(rates.standing), started=started
        )
        self._put(record)
        state: RungState = "stopped"
        reason = "by a signal"
        try:
            CLIMBED[rung.name](self.walk)
            state, reason = "done", ""
            self._count(_NOTHING)
        except (RungError, CliError) as error:
            state, reason = "failed", self.walk.redactor.text(str(error))
        finally:
            self._put(record.model_copy(update={"state": state, "reason": reason, "ended": self.walk.clock.now()}))
        if state != "done":
            self._say_what_stands()

    def _stop_nodes(self) -> bool:
        """Stop the fleet, and return whether EC2 has no compute nodes any more."""
        self.walk.run("fleet", "stop", self.walk.name, "--yes", "--force", codes=None)
        return self.walk.until(lambda: not self.walk.compute_nodes(), minutes=money.MINUTES_TO_STOP, every=15)

    def _keep_evidence(self) -> None:
        """Keep what a person should keep of a step that differs, and what may be the reason."""
        self.walk.deadline = self.walk.clock.now() + timedelta(minutes=_MINUTES_AFTER)
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

    def _count(self, usd_per_hour: Decimal, once: Decimal = _NOTHING) -> None:
        """Count costs at another rate from now on."""
        span = Span(since=self.walk.clock.now(), usd_per_hour=usd_per_hour, once_usd=once)
        self.proof = self.proof.model_copy(update={"spans": (*self.proof.spans, span)})
        self._save()

    def _agreed(self, rung: Rung, rates: Rates) -> bool:
        """Ask before a rung; the question ends when waiting for an answer would cost what the limit has."""
        tell(f"\n{NAMES.index(rung.name) + 1}. {rung.title}\nIt {rung.does}.")
        tell(money.announcement(rates, rung.minutes, self._spent(), self.request.limit))
        if self.request.is_emulated:
            return True
        seconds = None
        if self.proof.is_standing:
            seconds = money.minutes_left(self.request.limit, self._spent(), self.proof.spans[-1].usd_per_hour) * 60
        return answered(f"Type {rung.name} to start it; anything else ends the walk: ", seconds) == rung.name

    # --- what is known ---

    def _refuse_strangers(self) -> None:
        """Refuse to touch a deployment that this walk did not make."""
        self.walk.write("storage", grown=self.proof.is_standing)
        standing = self._standing_stacks()
        if standing and not self.proof.is_standing:
            raise OperationError(
                f"{', '.join(standing)}: not made by this walk, which deletes all it finds",
                "another `name` in the settings",
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
        with suppress(Exception):  # AWS may not answer now; the commands below are right all the same
            stacks, nodes = self._standing_stacks(), len(self.walk.compute_nodes())
            tell(
                f"These stacks exist: {', '.join(stacks) or 'none'}; nodes: {nodes}. "
                "CloudFormation continues what it has started.",
                err=True,
            )
        config = self.walk.config
        tell(
            f"What exists costs {dollars(self.proof.spans[-1].usd_per_hour)} an hour at most. No command watches the "
            "limit now. Jobs are cancelled by the head node when their step's time is over.\n\n"
            f"  ./ultracluster prove {self.request.name} --max-usd {self.request.limit:f}  # continues\n"
            f"  ULTRACLUSTER_CONFIG={config} ./ultracluster destroy {self.request.name} --all --unprotect "
            "--no-final-backup --sweep --force",
            err=True,
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
        """Write the report, as JSON and as Markdown, each as a whole."""
        self.proof = self.proof.model_copy(update={"time": self.walk.clock.now()})
        dumped = self.proof.model_dump(mode="json", exclude={*_COMPUTED})
        shown = Proof.model_validate(self.walk.redactor.value(dumped))
        self.walk.report.mkdir(parents=True, exist_ok=True)
        _replace(self.walk.report / "report.json", shown.to_json() + "\n")
        text = markdown.joined(markdown.of_blocks(shown.page()))
        _replace(self.walk.report / "report.md", f"# What only AWS can confirm\n\n{text}\n")


def tell(text: str = "", *, end: str = "\n", err: bool = False) -> None:
    """Print text, if anybody still reads it: without a reader nodes are stopped all the same."""
    with suppress(OSError):
        echo(text, err=err, end=end)


def answered(question: str, seconds: float | None) -> str:
    """Ask, and return the answer; empty: there was none in time, or the input ended."""
    interrupts.check()
    tell(question, end="", err=True)
    if not select.select([sys.stdin], [], [], seconds)[0]:
        tell("", err=True)
        return ""
    return sys.stdin.readline().strip().lower()


def _earlier(folder: Path) -> Proof | None:
    """Return the report of a folder; None: there is none.

    Raises:
        UnusableError: It is not one that this version can continue.
    """
    path = folder / "report" / "report.json"
    try:
        read = json.loads(path.read_bytes())
        return Proof.model_validate({key: value for key, value in read.items() if key not in _COMPUTED})
    except FileNotFoundError:
        return None
    except (ValueError, AttributeError) as error:
        raise UnusableError(
            f"{path}: {str(error).splitlines()[0]}", "--start-again, once nothing of that walk exists any more"
        ) from None


def _check_same(folder: Path, account: str, *, starts_again: bool) -> None:
    """Refuse to forget what an earlier walk has made, and to continue it in another account, where it made nothing."""
    if starts_again:
        raise OperationError(
            "what the earlier walk has made still exists", "the same command without --start-again continues that walk"
        )
    if _kept(folder).get("account") != account:
        raise OperationError(
            f"{folder}/report is of another account than that of these credentials", "use those, or another `name`"
        )


def _kept(folder: Path) -> Mapping[str, str]:
    """Return what a walk keeps beside its report and shows to nobody; nothing: it has kept nothing."""
    try:
        kept: Mapping[str, str] = json.loads((folder / _KEPT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return kept


def _salt(folder: Path, account: str) -> str:
    """Return the salt of a walk's other names, and keep it with the account."""
    salt = _kept(folder).get("salt") or secrets.token_hex(16)
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / _KEPT, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump({"salt": salt, "account": account}, file)
    return salt


def _account(region: str) -> str:
    """Return the account of the credentials in use."""
    return str(session().client("sts", region_name=region).get_caller_identity()["Account"])


def _private(raw: Raw, account: str) -> Iterator[str]:
    yield account
    yield from (socket.gethostname(), str(Path.home()), str(options.ROOT))
    if (user := getpass.getuser()) != "root":
        yield user
    yield from (raw.get("monitoring") or {}).get("emails") or []
    yield from (raw.get("budget") or {}).get("emails") or []


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def _nowhere(_: Observation) -> None:
    """Take an observation before there is a report."""
