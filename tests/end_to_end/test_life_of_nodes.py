"""The life that README's first command shows: stacks, nodes with the real Slurm, a job, a lost node, nothing left."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from emulator.machines import image

ROOT = Path(__file__).parents[2]
IN_ORDER = (
    r"\$ ./ultracluster deploy dev .*?exit code 0",
    r"\$ ./ultracluster status dev\n.*?Fleet +RUNNING.*?Software +ready.*?  Healthy\.\n  exit code 0",
    r"\$ ./ultracluster jobs list dev\n  1 running.*? CONFIGURING +2 ",
    r"\$ ./ultracluster fleet scale dev .*?exit code 0",
    r"\$ ./ultracluster status dev\n.*?Nodes +2 running.*?  Healthy\.\n  exit code 0",
    r"job 1 output \| [01]: trn1-dy-trn1-32xl-[12]\n",
    r"EC2 terminates (i-\w+), which is (trn1-dy-trn1-32xl-\d)\n",
    r"The instance of a node is gone\n.*?is gone; the job waits",
    r"HeadNode.InstanceType .*? refused.*?exit code 1",
    r"\$ ./ultracluster jobs list dev\n  1 running.*? RUNNING +2 ",
    r"\$ ./ultracluster destroy dev .*?exit code 0",
    r"  Nothing else\.\n",
)
"""What is printed, as patterns."""


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.validation
def test_a_whole_life_on_this_computer() -> None:
    image.prepare()  # it may take longer than a life
    done = subprocess.run(
        ["./ultracluster", "rehearse", "dev"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=1800
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    rest = said
    for pattern in IN_ORDER:
        found = re.search(pattern, rest, re.DOTALL)
        assert found, f"{pattern}\n{said}"
        rest = rest[found.end() :]
