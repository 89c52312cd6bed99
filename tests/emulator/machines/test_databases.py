"""A database instance of RDS is a server that lives as the instance does, and ends with whoever started it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from emulator.aws import EmulatedAws
from emulator.machinery import Machinery
from emulator.machines import image
from emulator.machines.guest.database import options, statements
from tests.emulator.account import Account

NAME = "history"


def test_of_a_parameter_group_formulas_do_not_count() -> None:
    given = {"max_connections": "{DBInstanceClassMemory/12582880}", "require_secure_transport": "1"}
    assert options(given, 3307)[-2:] == ["--loose-require_secure_transport=1", "--port=3307"]


def test_names_and_passwords_are_quoted() -> None:
    first, second, *_, last = statements("o'hara", "a\\'b", "x`y").splitlines()
    assert first == r"CREATE USER IF NOT EXISTS 'o''hara'@'%' IDENTIFIED BY 'a\\''b';"
    assert second == r"ALTER USER 'o''hara'@'%' IDENTIFIED BY 'a\\''b';"
    assert last == "CREATE DATABASE IF NOT EXISTS `x``y`;"


class Database:
    """One instance in an account whose nodes are machines."""

    def __init__(self, aws: EmulatedAws) -> None:
        self._aws = aws
        self.rds = Account(aws).client("rds")
        self.rds.create_db_instance(
            DBInstanceIdentifier=NAME,
            DBInstanceClass="db.t4g.micro",
            AllocatedStorage=20,
            Engine="mariadb",
            DBName="jobs",
            MasterUsername="slurm",
            MasterUserPassword="the first one",
            DBSubnetGroupName=Account(aws).subnet_group().ref,
        )
        self.wait("available")
        self._endpoint: dict[str, Any] = self.described["Endpoint"]

    @property
    def described(self) -> dict[str, Any]:
        described: dict[str, Any] = self.rds.describe_db_instances(DBInstanceIdentifier=NAME)["DBInstances"][0]
        return described

    def wait(self, status: str) -> None:
        end = time.monotonic() + 120
        while (now := self.described["DBInstanceStatus"]) != status:
            assert time.monotonic() < end, now
            time.sleep(0.1)

    def server(self) -> int | None:
        """Return the process of its server, which is below that of the emulated AWS."""
        below = [self._aws._process.pid]
        for process in below:
            children = Path(f"/proc/{process}/task/{process}/children")
            with suppress(FileNotFoundError):  # it has ended meanwhile
                tasks = children.parents[1].glob("*/children")
                below += [int(each) for task in tasks for each in task.read_text().split()]
                if Path(f"/proc/{process}/comm").read_text(encoding="ascii").strip() == "mariadbd":
                    return process
        return None

    def sql(self, password: str, statement: str) -> str:
        """Run a statement over the network, and return what comes back, or the error."""

        def inside(*command: str) -> subprocess.CompletedProcess[str]:
            within = ["nsenter", f"--target={process}", "--net", "--root", "--wd", *command]
            return subprocess.run(within, capture_output=True, text=True, check=False)

        process, port = self.server(), self._endpoint["Port"]
        address = inside("ip", "-4", "-o", "address", "show", "eth0").stdout.split()[3].partition("/")[0]
        server = (f"--host={address}", f"--port={port}", "--user=slurm", f"--password={password}")
        client = ("mariadb", "--no-defaults", "--connect-timeout=5", "--skip-column-names", "--batch")
        done = inside(*client, *server, f"--execute={statement}")
        return (done.stdout + done.stderr).strip()


@pytest.fixture
def aws() -> Iterator[EmulatedAws]:
    with EmulatedAws(machinery=Machinery(image.prepare())) as aws:
        yield aws


@pytest.mark.slow
@pytest.mark.system
def test_life_of_a_server(aws: EmulatedAws, wait_for: Callable[[Callable[[], bool]], None]) -> None:
    database = Database(aws)
    assert database.sql("the first one", "SELECT @@innodb_snapshot_isolation") == "0"
    database.sql("the first one", "CREATE TABLE jobs.done (id INT)")
    database.rds.modify_db_instance(DBInstanceIdentifier=NAME, MasterUserPassword="the second one")
    database.wait("available")
    assert "Access denied" in database.sql("the first one", "SELECT 1")
    first = database.server()
    assert first
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: database.server() not in (None, first) and database.sql("the second one", "SELECT 1") == "1")
    database.rds.stop_db_instance(DBInstanceIdentifier=NAME)
    database.wait("stopped")
    assert database.server() is None
    database.rds.start_db_instance(DBInstanceIdentifier=NAME)
    database.wait("available")
    assert database.sql("the second one", "SHOW TABLES IN jobs") == "done"
    last = database.server()
    assert last
    aws._process.kill()
    wait_for(lambda: not Path(f"/proc/{last}").exists())
