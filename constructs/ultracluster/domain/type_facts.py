"""What an instance type has that this project does not know, as the user says it."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated

from pydantic import Field

from ultracluster.domain.spec import Change, Setting, Spec
from ultracluster.domain.types import FROM_SIZE, Gib, text
from ultracluster.domain.violations import Violation

_TYPES = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceTypeInfo.html"
_PRICES = "https://aws.amazon.com/ec2/pricing/on-demand/"
_RELEASES = "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/release-notes/index.html"
NeuronRelease = Annotated[str, text(r"^2\.\d+\.\d+$", "a release of the Neuron SDK such as 2.28.1")]


class TypeFactsSpec(Spec):
    """What an instance type has that this project does not know; ``aws ec2 describe-instance-types`` tells most of it.

    Rules, checks before a deployment and nodes take it as it is: ParallelCluster asks EC2 itself.
    """

    vcpus: Annotated[int, Field(ge=1, le=10_000), Setting(Change.AT_ONCE, page=_TYPES)]
    """Default number of vCPUs, the unit of EC2's quotas (DefaultVCpus)."""
    memory_gib: Annotated[Gib, Field(ge=1, le=1_000_000), FROM_SIZE, Setting(Change.AT_ONCE, page=_TYPES)]
    """Memory of the host."""
    network_cards: Annotated[int, Field(ge=1, le=100), Setting(Change.AT_ONCE, page=_TYPES)] = 1
    """Network cards (MaximumNetworkCards)."""
    efa_devices: Annotated[int, Field(ge=0, le=100), Setting(Change.DRAINS, page=_TYPES)] = 0
    """EFA devices (MaximumEfaInterfaces); 0: it has no EFA."""
    neuron_devices: Annotated[int, Field(ge=0, le=1000), Setting(Change.DRAINS, page=_TYPES)] = 0
    """Chips of AWS Neuron (Count of NeuronDevices); 0: its nodes get no Neuron software."""
    neuron_cores: Annotated[int, Field(ge=0, le=100_000), Setting(Change.DRAINS, page=_TYPES)] = 0
    """NeuronCores of all chips, as ``neuron-ls`` counts them: half of the physical ones on Trn2."""
    first_neuron_sdk: Annotated[NeuronRelease | None, Setting(Change.AT_ONCE, page=_RELEASES)] = None
    """First release of the Neuron SDK that knows the chip; None: nothing is compared."""
    usd_per_hour: Annotated[float | None, Field(gt=0, le=1_000_000), Setting(Change.AT_ONCE, page=_PRICES)] = None
    """Price on demand in US dollars, where AWS's Price List is not asked; None: it is in no sums without the list."""

    @property
    def price(self) -> Decimal | None:
        """The price on demand, exact."""
        return None if self.usd_per_hour is None else Decimal(str(self.usd_per_hour))

    def for_nodes(self, instance_type: str) -> str:
        """Return what nodes are told: ``TYPE:DEVICES:CORES:EFA``."""
        return f"{instance_type}:{self.neuron_devices}:{self.neuron_cores}:{self.efa_devices}"


def violations(facts: TypeFactsSpec) -> Iterator[Violation]:
    """Yield what no instance type can have."""
    if facts.efa_devices > facts.network_cards:
        allowed = f"at most network_cards, {facts.network_cards}"
        yield facts.violation("efa_devices", allowed, "each is on a network card of its own")
    if facts.neuron_cores < facts.neuron_devices or bool(facts.neuron_cores) != bool(facts.neuron_devices):
        allowed = f"at least {facts.neuron_devices}, as many as neuron_devices" if facts.neuron_devices else "0"
        yield facts.violation("neuron_cores", allowed, "nodes compare it with what neuron-ls counts")
