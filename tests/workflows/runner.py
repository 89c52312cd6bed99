"""Runs workflows as GitHub does, as far as those of this project need it.

GitHub's own parser evaluates the expressions, bash runs the shell, and node the scripts of actions/github-script. Of
the other actions, which are not here, what they do is done. Runs may overlap, in threads; the jobs of one run one after
the other. A job has a runner of its own, on which it finds what an earlier one has left that git ignores, such as
environments, in place of caches.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from queue import Empty, LifoQueue
from typing import Any, NamedTuple

from tests.workflows.workflows import ACTIONS, WORKFLOWS, Document, read, run, run_script

Context = dict[str, Any]
SignIn = Callable[[Mapping[str, str], str, int], dict[str, str]]
"""Takes the claims of a job's token, the ARN of a role and seconds, and returns variables with credentials.

Raises:
    PermissionError: STS refuses.
"""
STATUS = re.compile(r"\b(always|cancelled|failure|success)\(\)")
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
LIMIT = 1800.0
"""Seconds after which something has gone wrong that is waited for; nothing here takes a third of it."""
NOT_HERE = ("actions/setup-python", "actions/cache", "actions/dependency-review-action")
"""Actions that do nothing here: there is a Python, there are caches, and GitHub alone knows its vulnerabilities."""


class ActionError(Exception):
    """An action has failed; the message is what its log says."""


@dataclass
class Job:
    """A job that was run or skipped.

    Attributes:
        result: success, failure, cancelled or skipped.
        outputs: What later jobs read.
        steps: The outcome of each step that has a name, an id or a command.
        log: What its steps printed.
        summary: What people see of it first.
    """

    result: str = "skipped"
    outputs: dict[str, str] = field(default_factory=dict)
    steps: dict[str, str] = field(default_factory=dict)
    log: str = ""
    summary: str = ""


class Run(dict[str, Job]):
    """The jobs of a workflow by their names; those of a called workflow have the caller's before theirs."""

    @property
    def result(self) -> str:
        results = {job.result for job in self.values()}
        return next((each for each in ("failure", "cancelled") if each in results), "success")

    @property
    def failed(self) -> list[str]:
        """The steps that failed, as JOB: STEP."""
        return [
            f"{name}: {step}"
            for name, job in self.items()
            for step, outcome in job.steps.items()
            if outcome == "failure"
        ]

    @property
    def text(self) -> str:
        """What all jobs printed, for a test that fails."""
        return "\n".join(f"=== {name}: {job.result}\n{job.log}\n{job.summary}" for name, job in self.items())


class Expressions:
    """GitHub's parser of expressions, which answers until the program ends."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            ["node", str(Path(__file__).with_name("expressions.mjs"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Expressions:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def value(self, expression: str, contexts: Context, **functions: bool) -> Any:
        """Return the value of an expression, as JSON has it."""
        return self._answer(expression, contexts, functions)["value"]

    def text(self, template: str, contexts: Context) -> str:
        """Return a text with each `${{ expression }}` replaced by its value."""
        return EXPRESSION.sub(lambda match: str(self._answer(match[1], contexts, {})["text"]), template)

    def _answer(self, expression: str, contexts: Context, functions: Mapping[str, bool]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"expression": expression.strip(), "contexts": contexts, "functions": functions}
        self._process.stdin.write(f"{json.dumps(asked)}\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


def git(directory: Path, *words: str) -> str:
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    done = subprocess.run(["git", *author, *words], cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Groups:
    """Concurrency groups, in each of which one job runs at a time.

    A job has its place in the queue as soon as nothing else keeps it from running, also while it waits for reviewers
    (https://github.com/hypothesis/lms/pull/4533, https://github.com/dotnet/docs/issues/28144).

    https://docs.github.com/en/actions/how-tos/write-workflows/choose-when-workflows-run/control-workflow-concurrency
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queues: dict[str, list[object]] = defaultdict(list)

    @contextmanager
    def turn(self, group: str, concurrency: Document) -> Iterator[bool]:
        """Wait for one's turn, and tell whether it came: without `queue: max` a newer job cancels one that waits."""
        place = object()
        with self._changed:
            queue = self._queues[group.lower()]
            assert not (queue and concurrency.get("cancel-in-progress")), "to cancel what runs is not played"
            if concurrency.get("queue") != "max":
                del queue[1:]
            queue.append(place)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: place not in queue or queue[0] is place, LIMIT), f"{group} is taken"
            has_turn = place in queue
        try:
            yield has_turn
        finally:
            with self._changed:
                if has_turn:
                    queue.remove(place)
                self._changed.notify_all()


class Runners:
    """GitHub's runners: a directory each, with the checkout and what steps write for GitHub."""

    def __init__(self, origin: Path) -> None:
        self._origin = origin
        self._numbers = count(1)
        self._free: LifoQueue[Path] = LifoQueue()

    @contextmanager
    def one(self) -> Iterator[Path]:
        """Yield one that no other job has."""
        try:
            runner = self._free.get_nowait()
        except Empty:
            runner = self._new()
        try:
            yield runner
        finally:
            self._free.put(runner)

    def _new(self) -> Path:
        runner = self._origin.with_name(f"runner-{next(self._numbers)}")
        shutil.copytree(self._origin.with_name("commands"), runner / "bin")
        (runner / "checkout").mkdir()
        git(runner / "checkout", "init", "--quiet")
        git(runner / "checkout", "remote", "add", "origin", f"file://{self._origin}")
        return runner


@dataclass
class Repository:
    """A repository on GitHub.

    Attributes:
        name: OWNER/NAME.
        checkout: Its commits, and where people work. Beside it are fakes of commands, in `commands`, and the runners.
        variables: Those of the runners.
        sign_in: What STS does with a job's token.
        approve: Called when a job waits for the reviewers of an environment; it may take its time.
        reviewed: Environments with required reviewers.
        comments: Those on the pull request.
    """

    name: str
    checkout: Path
    variables: Mapping[str, str]
    sign_in: SignIn
    approve: Callable[[str], None]
    reviewed: set[str] = field(default_factory=set)
    comments: list[dict[str, Any]] = field(default_factory=list)
    groups: Groups = field(default_factory=Groups, init=False)
    runners: Runners = field(init=False)

    def __post_init__(self) -> None:
        self.runners = Runners(self.checkout)

    def git(self, *words: str) -> str:
        return git(self.checkout, *words)

    def found(self) -> None:
        """Make the repository of the files that are there, from which any commit may be fetched, as from GitHub's."""
        self.git("init", "--quiet", "--initial-branch", "main")
        self.git("config", "uploadpack.allowAnySHA1InWant", "true")

    def commit(self, message: str, branch: str = "main") -> str:
        """Commit all that is changed, push it to a branch, and return the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        self.git("update-ref", f"refs/heads/{branch}", "HEAD")
        return self.git("rev-parse", "HEAD")

    def written(self, path: str) -> str:
        """Return what files of jobs have that run, or of those that ran last."""
        files = self.checkout.parent.glob(f"runner-*/checkout/{path}")
        return "".join(file.read_text(encoding="utf-8") for file in files)

    def merged(self, head: str) -> str:
        """Return the commit that GitHub tries for a pull request: `head` merged into main, which stays as it is."""
        self.git("checkout", "--quiet", "--force", "--detach", "main")
        self.git("merge", "--quiet", "--no-ff", "--message", f"Merge {head} into main", head)
        return self.git("rev-parse", "HEAD")

    def run(
        self,
        workflow: str,
        event_name: str,
        *,
        inputs: Context | None = None,
        jobs: Callable[[str], bool] = lambda _: True,
        **github: Any,
    ) -> Run:
        """Run a workflow for a commit of main, or as the context `github` says.

        Args:
            workflow: Its name.
            event_name: What happened.
            inputs: What somebody chose who started it.
            jobs: Tells which of its jobs run, by their names; the others are skipped.
            github: Further values of the context, such as `sha`.
        """
        known = {
            "event_name": event_name,
            "event": {},
            "ref": "refs/heads/main",
            "repository": self.name,
            "server_url": "https://github.com",
        }
        context = {"sha": self.git("rev-parse", "main"), **known, **github}
        with Expressions() as expressions:
            return _Runner(self, context, expressions, jobs).workflow(workflow, inputs or {})[0]


class _Runner:
    def __init__(
        self, repository: Repository, github: Context, expressions: Expressions, wanted: Callable[[str], bool]
    ) -> None:
        self._repository = repository
        self._github = github
        self._expressions = expressions
        self._wanted = wanted
        self._artifacts = Path(tempfile.mkdtemp(prefix="artifacts-", dir=repository.checkout.parent))

    def workflow(self, name: str, inputs: Context, prefix: str = "") -> tuple[Run, dict[str, str]]:
        """Run a workflow, and return its jobs and, if another one calls it, its outputs."""
        document = read(WORKFLOWS[name])
        with self._turn(document, {"github": self._github, "inputs": inputs}) as has_turn:
            if has_turn:
                return self._jobs(document, inputs, prefix)
        return Run({job: Job("cancelled") for job in document["jobs"]}), {}

    def _jobs(self, document: Document, inputs: Context, prefix: str) -> tuple[Run, dict[str, str]]:
        done = Run()
        for job, body in document["jobs"].items():
            needs = body.get("needs", [])
            needed = {each: done[each] for each in ([needs] if isinstance(needs, str) else needs)}
            contexts: Context = {"github": self._github, "inputs": inputs, "needs": {
                each: {"result": of.result, "outputs": of.outputs} for each, of in needed.items()
            }}  # fmt: skip
            goes_well = all(of.result == "success" for of in needed.values())
            if not self._wanted(f"{prefix}{job}") or not self._holds(body, contexts, success=goes_well):
                done[job] = Job()
            elif "uses" in body:
                values = {key: self._value(value, contexts) for key, value in body["with"].items()}
                inner, outputs = self.workflow(Path(body["uses"]).stem, values, f"{prefix}{job}/")
                done.update({f"{job}/{each}": of for each, of in inner.items()})
                done[job] = Job(inner.result, outputs)
            else:
                for each, values in _matrix(job, body):
                    done[each] = self._job(body, {**contexts, "matrix": values})
        declared = (document[True].get("workflow_call") or {}).get("outputs", {})
        contexts = {"jobs": {each: {"outputs": of.outputs} for each, of in done.items()}}
        return done, {key: self._expressions.text(each["value"], contexts) for key, each in declared.items()}

    def _job(self, body: Document, contexts: Context) -> Job:
        """Run a job when nobody else in its group does, and its environment's reviewers agree."""
        repository = self._repository
        environment = self._expressions.text(str(body.get("environment", "")), contexts)
        with self._turn(body, contexts) as has_turn:
            if not has_turn:
                return Job("cancelled")
            if environment in repository.reviewed:
                repository.approve(environment)
            with repository.runners.one() as runner:
                place = _Place(runner, self._artifacts, environment)
                return _JobRunner(repository, self._github, self._expressions, place).job(body, contexts)

    def _turn(self, body: Document, contexts: Context) -> AbstractContextManager[bool]:
        """Wait for the turn of a workflow or job, if it has a group."""
        if "concurrency" not in body:
            return nullcontext(enter_result=True)
        group = self._expressions.text(body["concurrency"]["group"], contexts)
        return self._repository.groups.turn(group, body["concurrency"])

    def _holds(self, body: Document, contexts: Context, *, success: bool) -> bool:
        return holds(self._expressions, body.get("if"), contexts, success=success)

    def _value(self, value: Any, contexts: Context) -> Any:
        return self._expressions.text(value, contexts) if isinstance(value, str) else value


def _matrix(job: str, body: Document) -> Iterator[tuple[str, Context]]:
    """Yield the name of a job and the values of its matrix, which has one dimension; once and none without one."""
    matrix = body.get("strategy", {}).get("matrix", {})
    if not matrix:
        yield job, {}
    for key, values in matrix.items():
        yield from ((f"{job} ({value})", {key: value}) for value in values)


def holds(expressions: Expressions, condition: str | None, contexts: Context, *, success: bool) -> bool:
    """Tell whether a condition of a job or step holds; one that asks for no status is for success alone."""
    text = condition or "success()"
    if not STATUS.search(text):
        text = f"success() && ({text})"
    functions = {"always": True, "cancelled": False, "failure": not success, "success": success}
    return bool(expressions.value(text, contexts, **functions))


class _Place(NamedTuple):
    """Where a job runs: the directory of its runner, that of the run's artifacts, and the environment of GitHub."""

    runner: Path
    artifacts: Path
    environment: str


class _JobRunner:
    """One job, with the variables and the outputs of its steps."""

    def __init__(self, repository: Repository, github: Context, expressions: Expressions, place: _Place) -> None:
        self._repository, self._github, self._expressions = repository, github, expressions
        self._files, self._artifacts, self._environment = place
        self._checkout = self._files / "checkout"
        self._claims: dict[str, str] = {}
        self._variables = {
            **repository.variables,
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_REPOSITORY": github["repository"],
            "GITHUB_SERVER_URL": github["server_url"],
            "GITHUB_SHA": github["sha"],
        }
        self._job = Job("success")

    def job(self, body: Document, contexts: Context) -> Job:
        for left in ("build", "review"):  # git ignores them, and no cache has them
            shutil.rmtree(self._checkout / left, ignore_errors=True)
        self._claims = self._token() if body["permissions"].get("id-token") == "write" else {}
        contexts = {**contexts, "steps": {}}
        self._steps(body["steps"], contexts)
        for key, value in body.get("outputs", {}).items():
            self._job.outputs[key] = self._expressions.text(value, contexts)
        return self._job

    def _steps(self, steps: list[Document], contexts: Context) -> None:
        for step in steps:
            name = str(step.get("name") or step.get("id") or step.get("run") or step["uses"])
            success, outputs, outcome = self._job.result == "success", dict[str, str](), "skipped"
            if holds(self._expressions, step.get("if"), contexts, success=success):
                self._job.log += f"--- {name}\n"
                with self._written(outputs):
                    outcome = "success" if self._step(step, contexts, outputs) else "failure"
            self._job.steps[name] = outcome
            if outcome == "failure" and not step.get("continue-on-error"):
                self._job.result = "failure"
            if "id" in step:
                contexts["steps"][step["id"]] = {"outputs": outputs, "outcome": outcome}

    def _step(self, step: Document, contexts: Context, outputs: dict[str, str]) -> bool:
        """Run a step, and return whether it succeeded."""
        variables = {**self._variables, **self._texts(step.get("env", {}), contexts)}
        if "run" in step:
            script = self._expressions.text(step["run"], contexts)
            done = run(script, self._checkout, self._files, **variables)
            self._job.log += done.stdout + done.stderr
            return done.returncode == 0
        try:
            self._action(step, contexts, variables, outputs)
        except ActionError as error:
            self._job.log += f"{error}\n"
            return False
        return True

    def _texts(self, given: Mapping[str, Any], contexts: Context) -> dict[str, str]:
        return {key: self._expressions.text(str(value), contexts) for key, value in given.items()}

    @contextmanager
    def _written(self, outputs: dict[str, str]) -> Iterator[None]:
        """Take what a step writes for GitHub."""
        output, summary = self._files / "GITHUB_OUTPUT", self._files / "GITHUB_STEP_SUMMARY"
        for path in (output, summary):
            path.write_text("", encoding="utf-8")
        yield
        outputs.update(dict(line.split("=", 1) for line in output.read_text(encoding="utf-8").splitlines()))
        self._job.summary += summary.read_text(encoding="utf-8")

    def _token(self) -> dict[str, str]:
        """Return the claims of the job's token (https://docs.github.com/en/actions/reference/security/oidc)."""
        where = f"environment:{self._environment}" if self._environment else f"ref:{self._github['ref']}"
        context = "pull_request" if self._github["event_name"] == "pull_request" and not self._environment else where
        subject = f"repo:{self._github['repository']}:{context}"
        claims = {"iss": "https://token.actions.githubusercontent.com", "sub": subject, "aud": "sts.amazonaws.com"}
        named = {"environment": self._environment} if self._environment else {}
        return {**claims, **named, "ref": self._github["ref"], "repository": self._github["repository"]}

    def _action(self, step: Document, contexts: Context, variables: Mapping[str, str], outputs: dict[str, str]) -> None:
        action, given = step["uses"].partition("@")[0], step.get("with", {})
        if action == "actions/checkout":
            self._check_out(int(given.get("fetch-depth", 1)))
        elif action.startswith("./.github/actions/"):
            self._steps(read(ACTIONS[Path(action).name])["runs"]["steps"], {**contexts, "inputs": given})
        elif action == "aws-actions/configure-aws-credentials":
            self._configure_credentials(self._texts(given, contexts))
        elif action == "actions/github-script":
            self._script(given["script"], variables, outputs)
        elif action == "actions/upload-artifact":
            shutil.rmtree(self._artifacts / given["name"], ignore_errors=True)
            shutil.copytree(self._checkout / given["path"], self._artifacts / given["name"])
        elif action == "actions/download-artifact":
            place = self._checkout / given["path"]
            shutil.copytree(self._artifacts / given["name"], place, dirs_exist_ok=True)
        elif action not in NOT_HERE:
            raise AssertionError(f"{action} is not known here")

    def _check_out(self, depth: int) -> None:
        """Fetch a commit with as much history as is wanted, 0 for all (https://github.com/actions/checkout#usage)."""
        sha = self._github["sha"]
        git(self._checkout, "fetch", "--quiet", "--no-tags", f"--depth={depth or 2**31 - 1}", "origin", sha)
        git(self._checkout, "checkout", "--quiet", "--force", "--detach", sha)
        git(self._checkout, "clean", "--quiet", "-ffd")

    def _configure_credentials(self, given: Mapping[str, str]) -> None:
        try:
            if not self._claims:
                raise PermissionError("Credentials could not be loaded: the job has no token")
            seconds = int(given.get("role-duration-seconds", 3600))
            credentials = self._repository.sign_in(self._claims, given["role-to-assume"], seconds)
        except PermissionError as error:
            raise ActionError(str(error)) from None
        region = given["aws-region"]
        self._variables |= {**credentials, "AWS_REGION": region, "AWS_DEFAULT_REGION": region}

    def _script(self, script: str, variables: Mapping[str, str], outputs: dict[str, str]) -> None:
        repository = self._repository
        owner, _, name = self._github["repository"].partition("/")
        number = self._github["event"].get("pull_request", {}).get("number")
        context = {"repo": {"owner": owner, "repo": name}, "issue": {"number": number}, "ref": self._github["ref"],
                   "sha": self._github["sha"]}  # fmt: skip
        stage = variables.get("STAGE", "")
        rules = [{"type": "required_reviewers"}] if stage in repository.reviewed else []
        answers = {
            "getEnvironment": {"data": {"protection_rules": rules}},
            "getRef": {"data": {"object": {"sha": repository.git("rev-parse", "main")}}},
            "listComments": {"data": repository.comments},
        }
        done = run_script(script, self._checkout, context, answers, **variables)
        for call in done.calls:
            self._apply(call, outputs)
        if done.error:
            raise ActionError(done.error)

    def _apply(self, call: Mapping[str, Any], outputs: dict[str, str]) -> None:
        comments = self._repository.comments
        match call["name"]:
            case "setOutput":
                outputs[call["key"]] = call["value"]
            case "summary":
                self._job.summary += call["text"]
            case "notice":
                self._job.log += f"notice: {call['text']}\n"
            case "createComment":
                author = {"login": "github-actions[bot]"}
                comments.append({"id": len(comments) + 1, "user": author, "body": call["body"]})
            case "updateComment":
                comments[call["comment_id"] - 1]["body"] = call["body"]
