"""Which Neuron SDK, operating system and PyTorch go together for training on Trn1.

Sources: the release manifest of aws-neuron-sdk (src/helperscripts/n2-manifest.json at tags v2.27.1 and v2.28.1) for
wheels; its page deploy/environments/dlami for the glibc that PyTorch 2.9 needs (2.35; Amazon Linux 2023 has 2.34);
the announcement of 2026-05-20 that PyTorch training on Trn1 ends with release 2.30.
"""

DEFAULT_SDK = "2.28.1"
DEFAULT_PYTORCH = "2.9"

PYTORCH_BY_OS = {
    "2.27.1": {
        "ubuntu2404": ("2.7", "2.8", "2.9"),
        "ubuntu2204": ("2.7", "2.8", "2.9"),
        "alinux2023": ("2.7", "2.8"),
    },
    "2.28.1": {
        "ubuntu2404": ("2.7", "2.8", "2.9"),
        "ubuntu2204": ("2.7", "2.8", "2.9"),
        "alinux2023": ("2.7", "2.8"),
    },
}
"""PyTorch minor versions by SDK release and ParallelCluster's name of the operating system."""
