"""Check an environment from inside: exact versions (NAME==VERSION as arguments), and what can be imported anywhere."""

import importlib
import importlib.metadata
import sys

MODULES = ("torch", "numpy", "h5py", "transformers", "tensorboard")
"""What needs no Neuron device: the head node has none."""

for requirement in sys.argv[1:]:
    name, _, wanted = requirement.partition("==")
    found = importlib.metadata.version(name).partition("+")[0]
    if found != wanted:
        sys.exit(f"{name} is {found}, not {wanted}")
for module in MODULES:
    importlib.import_module(module)
