"""Loads files that nobody would write, and reports those that end in anything but settings or a clear error.

``python -m tests.config.fuzz NUMBER`` runs one case again, with its traceback. A case is decided by its number alone.
"""

from __future__ import annotations

import json
import random
import re
import resource
import shutil
import sys
import time
import traceback
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from config import pipeline, settings
from config.messages import SettingsError

ROOT = Path(__file__).parents[2]
SEED = "settings"
MAX_MESSAGE = 20_000
CPU_SECONDS = 60
"""Of one case, after which the system ends this process: files of 1 MiB take some seconds."""
SETTINGS = [path.read_bytes() for path in sorted((ROOT / "config").glob("*.yaml")) if "users" not in path.name]
USERS = b"""\
groups: {nlp: 5000, vision: 5001}
users:
  - name: alice
    uid: 3001
    groups: [nlp, vision]
    ssh_keys: ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE alice"]
    admin: true
  - {name: bob, uid: 3002, gid: 4002, account: lab}
"""
PIPELINE = (ROOT / "pipeline.yaml").read_bytes()
SCHEMAS = {"settings": settings.Settings.model_json_schema(), "pipeline": pipeline.Pipeline.model_json_schema()}
TOKENS = [
    *("*a", "&a ", "<<: *a", "<<: ", "!!bool maybe", "!!python/object/apply:os.system [x]", "!x ", "! ", "!<tag:x> "),
    *("---\n", "...\n", "%YAML 1.1\n---\n", "%TAG ! x:\n---\n", "\t", "\n", "\r\n", "\r", "  ", "# ", "|\n", ">-\n"),
    *("? ", "- ", ": ", ", ", "{", "}", "[", "]", '"', "'", "@", "`", "=", "~", "%", "\x00", "\x1b[2J", "\x85"),
    *("\u2028", "\ufeff", "\u202e", "\U0001f600", "null", "true", "no", "on", ".nan", "-.inf", "1.0e+999", "1e3"),
    *("0x" + "f" * 90, "9" * 400, "-" + "9" * 99, "0b_", "0o7", "1:99:59", "1_0", "2026-13-45", "2026-01-01 25:00:00"),
    *('"\\0"', '"\\e[31m"', '"\\n"', '"\\ud800"', "${Token[TOKEN.1]}", "{{ssm:x}}", "../../etc/passwd", "x" * 5000),
]  # fmt: skip
SCALARS: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 10**99, -(10**99), 0.5, 1e300, "", " ", "0", "null", "a\nb"),
    *("x" * 3000, "10.0.0.0/16", "10.0.0.0/99", "0.0.0.0/0", "us-west-2", "trn1.32xlarge", "root", "/", "/home"),
    *("/fsx", "\x1b[31m", "fs-01234567", "a-users.yaml", "\u202e", "\ud800", "-", [], {}, [[]], [{}]),
    *({"Name": None}, {"": {}}, {"\0": 1}),
]  # fmt: skip


def mutate_bytes(chance: random.Random, content: bytes) -> bytes:
    """Replace, repeat, move or delete some bytes."""
    data = bytearray(content)
    for _ in range(chance.randint(1, 8)):
        start = chance.randint(0, len(data))
        end = min(len(data), start + chance.choice((0, 1, 1, 5, 50, 500)))
        piece = chance.choice(
            (b"", bytes([chance.randrange(256)]), chance.randbytes(4), bytes(data[start:end]) * chance.randint(1, 9))
        )
        data[start:end] = piece
    return bytes(data)


def mutate_tokens(chance: random.Random, content: bytes) -> bytes:
    """Replace or add words and signs."""
    parts = re.findall(r"\w+|\s+|.", content.decode(), re.DOTALL)
    for _ in range(chance.randint(1, 6)):
        place = chance.randrange(len(parts))
        token = chance.choice(TOKENS) if chance.random() < 0.8 else chance.choice(parts)
        parts[place : place + chance.randint(0, 1)] = [token]
    return "".join(parts).encode("utf-8", "surrogatepass")


def places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the places of all values."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(each for key, child in children for each in places(child, (*place, key)))]


def at(value: Any, place: tuple[Any, ...]) -> Any:
    """Return what is at a place."""
    for key in place:
        value = value[key]
    return value


def any_value(chance: random.Random, depth: int = 0) -> Any:
    """Return a value of no schema."""
    kind = chance.random()
    if kind < 0.7 or depth > 4:
        return deepcopy(chance.choice(SCALARS))  # a later change of the value is of this case alone
    if kind < 0.85:
        # 60 of 60 of 60 would be a file of MiB, which is refused before it is read, and takes a second to write.
        return [any_value(chance, depth + 1) for _ in range(chance.choice((1, 2, 3, 4 if depth else 60)))]
    keys = ("name", "Name", "type", "users", "Scheduling", "SlurmQueues", "SlurmSettings", "existing", "", "\x1b", "1")
    return {chance.choice(keys): any_value(chance, depth + 1) for _ in range(chance.randint(1, 3))}


def mutate_structure(chance: random.Random, content: bytes) -> bytes:
    """Replace, delete, copy or rename values and keys."""
    value = yaml.load(content, yaml.CSafeLoader)
    for _ in range(chance.randint(1, 4)):
        place = chance.choice(places(value)[1:] or [()])
        if not place:
            break
        holder, key = at(value, place[:-1]), place[-1]
        what = chance.randrange(5)
        if what == 0:
            del holder[key]
        elif what == 1 and isinstance(holder, dict):
            holder[chance.choice(("nome", "\x1b[2J", "k" * 400, f"{key}s", str(key).upper()))] = holder.pop(key)
        elif what == 2:
            holder[key] = json.loads(json.dumps(at(value, chance.choice(places(value)))))
        elif what == 3 and isinstance(holder, list):
            holder[key:key] = [json.loads(json.dumps(holder[key]))] * chance.choice((*[1, 2, 3, 100] * 4, 1500))
        else:
            holder[key] = any_value(chance)
    return dumped(chance, value)


def dumped(chance: random.Random, value: Any) -> bytes:
    """Return YAML in one of its ways: with aliases for what is there twice, or as JSON."""
    if chance.random() < 0.5:
        return json.dumps(value, ensure_ascii=chance.random() < 0.5, indent=1).encode("utf-8", "surrogatepass")
    try:
        text = yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=False)
    except UnicodeEncodeError:  # libyaml writes no surrogates; PyYAML does, and takes ten times as long
        text = yaml.safe_dump(value, sort_keys=False)
    return text.encode("utf-8", "surrogatepass")


def of_schema(chance: random.Random, node: dict[str, Any], definitions: dict[str, Any]) -> Any:  # noqa: PLR0911
    """Return a value that a JSON schema may accept."""
    if "$ref" in node:
        node = definitions[node["$ref"].rpartition("/")[2]]
    if chance.random() < 0.03:
        return any_value(chance)
    if "anyOf" in node:
        return of_schema(chance, chance.choice(node["anyOf"]), definitions)
    if "enum" in node or "const" in node:
        return chance.choice(node.get("enum", [node.get("const")]))
    kind = node.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if "properties" in node:
        named = {key: child for key, child in node["properties"].items() if chance.random() < 0.5}
        named |= {key: node["properties"][key] for key in node.get("required", ()) if chance.random() < 0.97}
        return {key: of_schema(chance, child, definitions) for key, child in named.items()}
    if kind == "array":
        count = chance.choice((0, 1, 2, 3, node.get("maxItems", 0) if chance.random() < 0.01 else 1))
        return [of_schema(chance, node["items"], definitions) for _ in range(min(count, 1000))]
    if kind in ("integer", "number"):
        low, high = node.get("minimum", 0), node.get("maximum", 100)
        return chance.choice((low, high, low - 1, high + 1, chance.randint(low, high), low + 1))
    if kind == "boolean":
        return chance.random() < 0.5
    if kind == "object":
        other = node.get("additionalProperties")
        child = other if isinstance(other, dict) else {"type": "string"}
        return {f"n{chance.randrange(9)}": of_schema(chance, child, definitions) for _ in range(chance.randint(0, 3))}
    samples = ("trn1", "us-west-2", "usw2-az4", "10.0.64.0/18", "/fsx", "trn1.32xlarge", "lab", "nlp", "a@example.com")
    return chance.choice((*samples, "dev", "arn:aws:kms:us-west-2:123456789012:key/1", "fs-01234567", "Acme/trn1", "x"))


def of_settings_schema(chance: random.Random, _: bytes) -> bytes:
    """Write settings by their schema."""
    return dumped(chance, of_schema(chance, SCHEMAS["settings"], SCHEMAS["settings"]["$defs"]))


def of_pipeline_schema(chance: random.Random, _: bytes) -> bytes:
    """Write pipeline.yaml by its schema."""
    return dumped(chance, of_schema(chance, SCHEMAS["pipeline"], SCHEMAS["pipeline"]["$defs"]))


QUOTE, TAB, ESCAPE = '"', "\t", "\x1b"


def enlarge(chance: random.Random, content: bytes) -> bytes:
    """Add very much of something: depth, aliases, keys, items, digits, characters, documents."""
    count = chance.choice((60, 3000, 30_000, 200_000))
    opener = chance.choice(("[", "{", "- ", "? ", "{a: ", "[[a, ", "a: [", "!x [", "&a [", "<<: {"))
    level = [f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 9)}]" for number in range(1, 9)]
    added = chance.choice(
        (
            opener * count,
            f"deep: {opener * count}",
            "\n".join(["a0: &a0 [x]", *level, f"name: *a{len(level)}"]),
            "".join(
                f"{chance.choice(('key', '?', '- ', ESCAPE))}{number}: {number}\n" for number in range(count // 10)
            ),
            f"tags: {{{''.join(f'k{number}: v, ' for number in range(count // 10))}}}",
            f"users: [{'{name: a, uid: 2000, groups: [b, c]}, ' * (count // 100)}]",
            f"groups: {{{''.join(f'g{number}: 2000, ' for number in range(count // 50))}}}",
            f"name: {chance.choice(('1', '1:', '0xf', '-9', 'x', QUOTE, TAB, '.')) * count}",
            f"accounting: {{accounts: [{''.join(f'{{name: a{n}, parent: a{n + 1}}}, ' for n in range(count // 50))}]}}",
            "---\n" * count,
            "a: 1\n" * (count // 10),
            "x" * count,
        )
    ).encode()
    return chance.choice((added, content + b"\n" + added, added + b"\n" + content))


Change = Callable[[random.Random, bytes], bytes]
CHANGES: list[Change] = [*[mutate_bytes, mutate_tokens, mutate_structure] * 4, enlarge]
"""Enlarging takes as long as twenty of the others."""


@dataclass(frozen=True)
class Case:
    """A file to load.

    Attributes:
        number: What decides it.
        kind: Whose loader reads it.
        content: The file.
    """

    number: int
    kind: str
    content: bytes

    @classmethod
    def make(cls, number: int) -> Case:
        """Make the case of a number."""
        chance = random.Random(f"{SEED}-{number}")  # noqa: S311 - no secret
        kind = chance.choice(("settings", "settings", "users", "pipeline"))
        content = {"settings": chance.choice(SETTINGS), "users": USERS, "pipeline": PIPELINE}[kind]
        grammar: dict[str, list[Change]] = {"settings": [of_settings_schema] * 4, "pipeline": [of_pipeline_schema] * 4}
        return cls(number, kind, chance.choice([*CHANGES, *grammar.get(kind, [])])(chance, content))

    def load(self, directory: Path) -> str:
        """Load it, and return what is reported: the error, or warnings.

        The file stays in the directory, so that it is there when this process does not survive it.
        """
        name = {"settings": "case.yaml", "users": "case-users.yaml", "pipeline": "pipeline.yaml"}[self.kind]
        (directory / name).write_bytes(self.content)
        try:
            if self.kind == "pipeline":
                pipeline.load(directory / name)
                return ""
            if self.kind == "users":
                (directory / "case.yaml").write_bytes(b"users: case-users.yaml\n" + SETTINGS[0])
            return "\n".join(settings.load(directory / "case.yaml").warnings)
        except SettingsError as error:
            return str(error)


def problem(case: Case, directory: Path) -> str:
    """Return what is wrong with what a case ends in; empty: nothing."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + CPU_SECONDS, hard))
    try:
        reported = case.load(directory)
    except Exception:
        return traceback.format_exc()[-2000:]
    if len(reported.encode("utf-8", "surrogatepass")) > MAX_MESSAGE:
        return f"a message of {len(reported)} characters: {reported[:500]}"
    for line in reported.split("\n"):
        if not line.isprintable():
            return f"what is not printable in {line!r}"
        if ": got " in line and "allowed: " not in line and "should " not in line and len(line) < 1000:
            return f"nothing that is allowed in {line!r}"
    return ""


def main(first: int, cases: int, directory: Path) -> None:
    """Run so many cases; print each before it runs, and problems."""
    shutil.copytree(
        ROOT / "config", directory / "config", dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.py", "__pycache__")
    )
    for number in range(first, first + cases):
        case = Case.make(number)
        print(json.dumps({"case": number, "kind": case.kind}), flush=True)
        if text := problem(case, directory):
            print(json.dumps({"case": number, "problem": text}), flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            one = Case.make(int(sys.argv[1]))
            sys.stdout.buffer.write(one.content[:2000] + b"\n")
            print(one.kind, one.load(Path(folder)), sep="\n")
    else:
        main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
