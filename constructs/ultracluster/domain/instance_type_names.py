"""Names of EC2's instance types, so that a misspelt one is told before a deployment. Newer ones are taken, too.

From the service model of EC2 in botocore 1.44.5, ``InstanceType``; a test compares them.
"""

from difflib import get_close_matches
from functools import cache

_SIZES = (
    ("a1", "medium large xlarge 2xlarge 4xlarge metal"),
    ("c1", "medium xlarge"),
    ("c3 c4 r3", "large xlarge 2xlarge 4xlarge 8xlarge"),
    ("c5 c5d", "large xlarge 2xlarge 4xlarge 9xlarge 12xlarge 18xlarge 24xlarge metal"),
    ("c5a c5ad m5a m5ad r5a r5ad", "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge"),
    ("c5n", "large xlarge 2xlarge 4xlarge 9xlarge 18xlarge metal"),
    ("c6a m6a r6a", "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge 48xlarge metal"),
    (
        "c6g c6gd c7g c7gd c7gn m6g m6gd m7g m7gd r6g r6gd r7g r7gd x2gd",
        "medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge metal",
    ),
    ("c6gn", "medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge"),
    (
        "c6i c6id c6in i4i m6i m6id m6idn m6in r6i r6id r6idn r6in",
        "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge metal",
    ),
    (
        "c7a m7a r7a",
        "medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge 48xlarge metal-48xl",
    ),
    (
        "c7i i7i i8g m7i r7i",
        "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 48xlarge metal-24xl metal-48xl",
    ),
    ("c7i-flex c8i-flex m7i-flex m8i-flex r8i-flex", "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge"),
    (
        "c8a c8g c8gb c8gd c8gn m8a m8g m8gb m8gd m8gn m9g m9gd r8a r8g r8gb r8gd r8gn x8g",
        "medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 48xlarge metal-24xl metal-48xl",
    ),
    (
        "c8i c8ib c8id c8in m8i m8ib m8id m8idb m8idn m8in r8i r8ib r8id r8idb r8idn r8in",
        "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge 48xlarge 96xlarge "
        "metal-48xl metal-96xl",
    ),
    ("c8ine m8ine", "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge"),
    ("c9g c9gd r9g r9gd", "medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 48xlarge metal-48xl"),
    ("cc1 cg1 gr6f hi1", "4xlarge"),
    ("cc2 cr1 hs1", "8xlarge"),
    ("d2 d3 i2", "xlarge 2xlarge 4xlarge 8xlarge"),
    ("d3en", "xlarge 2xlarge 4xlarge 6xlarge 8xlarge 12xlarge"),
    ("dl1 dl2q p3dn p4d p4de", "24xlarge"),
    ("f1", "2xlarge 4xlarge 16xlarge"),
    ("f2", "6xlarge 12xlarge 48xlarge"),
    ("g2", "2xlarge 8xlarge"),
    ("g3 hpc7g", "4xlarge 8xlarge 16xlarge"),
    ("g3s", "xlarge"),
    ("g4ad", "xlarge 2xlarge 4xlarge 8xlarge 16xlarge"),
    ("g4dn", "xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge metal"),
    ("g5 g6 g6e", "xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 48xlarge"),
    ("g5g", "xlarge 2xlarge 4xlarge 8xlarge 16xlarge metal"),
    ("g6f", "large xlarge 2xlarge 4xlarge"),
    ("g7 g7e", "2xlarge 4xlarge 8xlarge 12xlarge 24xlarge 48xlarge"),
    ("gr6", "4xlarge 8xlarge"),
    ("h1", "2xlarge 4xlarge 8xlarge 16xlarge"),
    ("hpc6a p5e p5en p6-b200 p6-b300 trn2u", "48xlarge"),
    ("hpc6id trn1n", "32xlarge"),
    ("hpc7a", "12xlarge 24xlarge 48xlarge 96xlarge"),
    ("hpc8a", "96xlarge"),
    ("i3", "large xlarge 2xlarge 4xlarge 8xlarge 16xlarge metal"),
    ("i3en", "large xlarge 2xlarge 3xlarge 6xlarge 12xlarge 24xlarge metal"),
    ("i4g im4gn r4", "large xlarge 2xlarge 4xlarge 8xlarge 16xlarge"),
    ("i7ie i8ge", "large xlarge 2xlarge 3xlarge 6xlarge 12xlarge 18xlarge 24xlarge 48xlarge metal-24xl metal-48xl"),
    ("inf1", "xlarge 2xlarge 6xlarge 24xlarge"),
    ("inf2", "xlarge 8xlarge 24xlarge 48xlarge"),
    ("is4gen", "medium large xlarge 2xlarge 4xlarge 8xlarge"),
    ("m1", "small medium large xlarge"),
    ("m2", "xlarge 2xlarge 4xlarge"),
    ("m3", "medium large xlarge 2xlarge"),
    ("m4", "large xlarge 2xlarge 4xlarge 10xlarge 16xlarge"),
    ("m5 m5d m5dn m5n r5 r5b r5d r5dn r5n", "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge metal"),
    ("m5zn z1d", "large xlarge 2xlarge 3xlarge 6xlarge 12xlarge metal"),
    ("m8azn", "medium large xlarge 3xlarge 6xlarge 12xlarge 24xlarge metal-12xl metal-24xl"),
    ("mac-m3ultra mac-m4 mac-m4max mac-m4pro mac1 mac2 mac2-m1ultra mac2-m2 mac2-m2pro", "metal"),
    ("p2", "xlarge 8xlarge 16xlarge"),
    ("p3", "2xlarge 8xlarge 16xlarge"),
    ("p5", "4xlarge 48xlarge"),
    ("p6e-gb200", "36xlarge"),
    ("r7iz", "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 32xlarge metal-16xl metal-32xl"),
    ("t1", "micro"),
    ("t2 t3 t3a t4g", "nano micro small medium large xlarge 2xlarge"),
    ("t8i", "nano micro small medium"),
    ("trn1", "2xlarge 32xlarge"),
    ("trn2", "3xlarge 48xlarge"),
    ("u-12tb1 u-18tb1 u-24tb1 u-9tb1", "112xlarge metal"),
    ("u-3tb1", "56xlarge"),
    ("u-6tb1", "56xlarge 112xlarge metal"),
    ("u7i-12tb u7ib-12tb u7in-16tb u7in-24tb u7in-32tb", "224xlarge"),
    ("u7i-6tb u7i-8tb", "112xlarge"),
    ("u7inh-32tb", "480xlarge"),
    ("vt1", "3xlarge 6xlarge 24xlarge"),
    ("x1", "16xlarge 32xlarge"),
    ("x1e", "xlarge 2xlarge 4xlarge 8xlarge 16xlarge 32xlarge"),
    ("x2idn", "16xlarge 24xlarge 32xlarge metal"),
    ("x2iedn", "xlarge 2xlarge 4xlarge 8xlarge 16xlarge 24xlarge 32xlarge metal"),
    ("x2iezn", "2xlarge 4xlarge 6xlarge 8xlarge 12xlarge metal"),
    ("x8aedz", "large xlarge 3xlarge 6xlarge 12xlarge 24xlarge metal-12xl metal-24xl"),
    (
        "x8i",
        "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge 48xlarge 64xlarge 96xlarge "
        "metal-48xl metal-96xl",
    ),
)
"""Families, and the sizes that each of them has."""


@cache
def _known() -> frozenset[str]:
    return frozenset(
        f"{family}.{size}" for families, sizes in _SIZES for family in families.split() for size in sizes.split()
    )


def is_known(instance_type: str) -> bool:
    """Return whether EC2 had a type when this was written."""
    return instance_type in _known()


def similar(instance_type: str) -> list[str]:
    """Return the types that a name may be meant for: sizes of the family, or names that look alike."""
    family = instance_type.partition(".")[0]
    of_family = sorted(each for each in _known() if each.startswith(f"{family}."))
    return get_close_matches(instance_type, of_family or sorted(_known()), n=3, cutoff=0.5)
