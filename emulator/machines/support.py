"""Whether machines can be made on this computer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Final

_NAMESPACES: Final = ("unshare", "--user", "--map-root-user", "--mount", "--net", "--pid", "--fork", "true")
_TOOLS: Final = ("unshare", "nsenter", "setpriv")
"""Programs of util-linux, which Debian and Ubuntu always have."""


class MachineError(RuntimeError):
    """A machine, or what it is made of, could not be made; the message says why."""


def reason() -> str:
    """Return why no machines can be made on this computer, as the end of a sentence; empty: they can."""
    if sys.platform != "linux":
        return "this is not Linux"
    if missing := [each for each in _TOOLS if not shutil.which(each)]:
        return f"{', '.join(missing)} of util-linux is missing"
    is_root = os.geteuid() == 0
    if not shutil.which("mmdebstrap") and not (is_root and shutil.which("apt-get")):
        return "mmdebstrap is missing (apt install mmdebstrap)"
    if not is_root and subprocess.run(_NAMESPACES, capture_output=True, check=False).returncode:
        return "you are not root, and user namespaces are not allowed"
    return ""
