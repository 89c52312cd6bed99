"""Home directories on storage that outlives head nodes and clusters."""

from typing import Annotated, Literal

from ultracluster.domain.spec import Change, Setting, Spec


class HomesSpec(Spec):
    """A file system for /home, in the stack NAME-team."""

    type: Annotated[
        Literal["efs", "fsx-openzfs"],
        Setting(Change.NEW_CLUSTER, page="https://docs.aws.amazon.com/parallelcluster/latest/ug/SharedStorage-v3.html"),
    ]
    """efs: Amazon EFS, which grows by itself; fsx-openzfs: FSx for OpenZFS, faster for many small files, with quotas."""
    retain: Annotated[
        bool,
        Setting(
            Change.AT_ONCE,
            page="https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-deletionpolicy.html",
        ),
    ] = True
    """Whether the file system stays, and costs, when its stack is destroyed."""
