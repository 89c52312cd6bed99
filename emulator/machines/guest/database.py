"""Process 1 of a machine that is a database instance of RDS: MariaDB, run as ``python3 /opt/emulator/database.py``.

What differs from RDS's own servers: it is MariaDB for the engine mysql, too, with little memory. Of the parameter group
counts what MariaDB knows; formulas such as {DBInstanceClassMemory*3/4} do not.
"""

from __future__ import annotations

import json
import os
import pwd
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_DATA: Final = Path("/var/lib/mysql")
_FIRST: Final = Path("/run/first.sql")
_OPTIONS: Final = (
    "--no-defaults",
    "--bind-address=0.0.0.0",
    "--skip-name-resolve",
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=16M",
    "--innodb-snapshot-isolation=OFF",  # as in MySQL; Slurm fails with it
)
_GRANTED: Final = (
    "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, RELOAD, PROCESS, REFERENCES, INDEX, ALTER, SHOW DATABASES, "
    "CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE, REPLICATION SLAVE, REPLICATION CLIENT, CREATE VIEW, SHOW VIEW, "
    "CREATE ROUTINE, ALTER ROUTINE, CREATE USER, EVENT, TRIGGER"
)
"""What a master user may do.

https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/UsingWithRDS.MasterAccounts.html
"""


def options(parameters: Mapping[str, str], port: int) -> list[str]:
    """Return the options of mariadbd: of a parameter group, what is no formula, and what it knows."""
    given = [f"--loose-{name}={value}" for name, value in sorted(parameters.items()) if "{" not in value]
    return [*_OPTIONS, *given, f"--port={port}"]


def statements(user: str, password: str, schema: str | None) -> str:
    """Return the statements that a server runs when it starts, a line each."""
    name, word = _quoted(user), _quoted(password)
    lines = [
        f"CREATE USER IF NOT EXISTS {name}@'%' IDENTIFIED BY {word};",
        f"ALTER USER {name}@'%' IDENTIFIED BY {word};",
        f"GRANT {_GRANTED} ON *.* TO {name}@'%' WITH GRANT OPTION;",
    ]
    if schema:
        lines.append(f"CREATE DATABASE IF NOT EXISTS `{schema.replace('`', '``')}`;")
    return "".join(f"{line}\n" for line in lines)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def main() -> None:
    """Become the server."""
    wanted: dict[str, Any] = json.loads(os.environ["DATABASE"])
    owner = pwd.getpwuid(os.geteuid()).pw_name
    if not _DATA.exists():
        new = _DATA.with_name("new")
        install = ["mariadb-install-db", "--no-defaults", f"--user={owner}", f"--datadir={new}", "--skip-test-db"]
        subprocess.run(
            [*install, "--auth-root-authentication-method=socket", f"--auth-root-socket-user={owner}"],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        new.rename(_DATA)
    _FIRST.touch(0o600)
    _FIRST.write_text(statements(wanted["user"], wanted["password"], wanted["schema"]), encoding="utf-8")
    command = ["mariadbd", *options(wanted["parameters"], wanted["port"]), f"--init-file={_FIRST}"]
    os.execvp(command[0], [*command, f"--user={owner}", f"--datadir={_DATA}", f"--socket={SOCKET}"])  # noqa: S606


SOCKET: Final = "/run/mariadb.sock"

if __name__ == "__main__":
    main()
