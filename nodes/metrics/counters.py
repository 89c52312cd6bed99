"""Counters of the devices in sysfs: uncorrectable errors of Neuron devices, bytes of EFA devices.

EFA: ``rx_bytes`` and ``tx_bytes`` are all that a device receives and sends; ``send_bytes``, ``rdma_read_bytes`` and the
like are parts of it. ``retrans_bytes`` is there from Nitro v4 on
(https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-working-monitor.html). Neuron: the counters that the health
checks read; neuron-monitor has the same ones without the repairable errors, so they are taken from here alone
(https://awsdocs-neuron.readthedocs-hosted.com/en/latest/tools/neuron-sys-tools/neuron-sysfs-user-guide.html).
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

_NEURON = "sys/devices/virtual/neuron_device/neuron*/stats/hardware"
_EFA = "sys/class/infiniband/*/ports/*/hw_counters"
FILES = {
    "UncorrectableErrors": (
        f"{_NEURON}/sram_ecc_uncorrected",
        f"{_NEURON}/mem_ecc_uncorrected",
        f"{_NEURON}/mem_ecc_repairable_uncorrected",
    ),
    "EfaReceivedBytes": (f"{_EFA}/rx_bytes",),
    "EfaSentBytes": (f"{_EFA}/tx_bytes",),
    "EfaRetransmittedBytes": (f"{_EFA}/retrans_bytes",),
}
"""Patterns of counters by metric."""

Reading = Mapping[str, Mapping[str, int]]
"""Values by path of the counter, by metric. A metric without counters is left out."""


def read(root: Path) -> Reading:
    """Return what the counters say.

    Args:
        root: Root directory.
    """
    reading: dict[str, dict[str, int]] = {}
    for name, patterns in FILES.items():
        for path in [path for pattern in patterns for path in root.glob(pattern)]:
            with contextlib.suppress(OSError, ValueError):  # the driver is being unloaded
                reading.setdefault(name, {})[str(path)] = int(path.read_text(encoding="ascii"))
    return reading


def increases(before: Reading, now: Reading) -> dict[str, int]:
    """Return how much has been counted between two readings, by metric.

    A counter that is lower than before started again at 0, because its driver was loaded again. One that was not there
    before counts from now on.
    """
    return {
        name: sum(_increase(before.get(name, {}).get(path, value), value) for path, value in values.items())
        for name, values in now.items()
    }


def _increase(before: int, now: int) -> int:
    return now - before if now >= before else now
