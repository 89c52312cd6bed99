"""What a program pays for that only wants settings."""

import json
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1]
PROGRAM = "import json, sys, config.settings; print(json.dumps(sorted(sys.modules)))"


def test_settings_load_without_cdk_and_boto3() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=PROJECT, capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert "config.settings" in loaded
    assert {"aws_cdk", "jsii", "boto3", "botocore", "moto"} & loaded == set()
