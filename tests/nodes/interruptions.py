"""What stops a script until its first pause: commands of bash for machines under test."""

from __future__ import annotations

from tests.nodes.machine import Machine

FORGET_HOSTS = "mv /etc/hosts /etc/hosts.there; : >/etc/hosts"
RECALL_HOSTS = "mv /etc/hosts.there /etc/hosts"

HOLD_DPKG = """
    python3 -c '
import fcntl, time
lock = open("/var/lib/dpkg/lock-frontend", "w")
fcntl.lockf(lock, fcntl.LOCK_EX)
open("/held", "w")
time.sleep(1000)
' &
    echo $! >/holder
    until [[ -e /held ]]; do /usr/bin/sleep 0.05; done
    """
"""As apt and dpkg do it: a lock of POSIX."""
RELEASE_DPKG = "kill $(</holder); while [[ -e /proc/$(</holder)/fd/3 ]]; do :; done"

HOLD_DNF = "/usr/bin/sleep infinity & echo -n $! >/var/lib/dnf/rpmdb_lock.pid"
"""As dnf does it: the file names a process that lives."""
RELEASE_DNF = "rm /var/lib/dnf/rpmdb_lock.pid"


def break_network(machine: Machine, program: str, argument: str) -> None:
    """Let hosts have no addresses as soon as a program has run with an argument, until the script pauses."""
    forget = f'[[ "$*" != *{argument}* ]] || {{ {FORGET_HOSTS}; }}'
    machine.write_program(f"/usr/local/bin/{program}", f'/usr/bin/{program} "$@"\ncode=$?\n{forget}\nexit $code')
    machine.write_program("/usr/local/bin/sleep", RECALL_HOSTS)


def assert_paused_once(output: str, what: str) -> None:
    """A script that told this, paused and continued."""
    assert f": {what}" in output
    assert output.count("; once more in ") == 1
