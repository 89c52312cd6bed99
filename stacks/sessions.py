"""Sessions of Session Manager as the person who opens them."""

from aws_cdk import aws_ssm as ssm
from constructs import Construct

from ultracluster.domain import names


def add_session_document(scope: Construct, cluster: str) -> ssm.CfnDocument:
    """Add the document of a cluster's sessions: each is of the user that the principal's tag SSMSessionRunAs names.

    Without the tag there is no session; there is no other user in its place. The account's own preferences, which are
    for all instances of the Region, stay as they are.
    https://docs.aws.amazon.com/systems-manager/latest/userguide/session-preferences-run-as.html,
    https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-schema.html
    """
    return ssm.CfnDocument(
        scope,
        "Sessions",
        name=names.session_document(cluster),
        document_type="Session",
        document_format="JSON",
        update_method="NewVersion",
        content={
            "schemaVersion": "1.0",
            "description": f"A shell on a node of {cluster}, as the user of the IAM tag SSMSessionRunAs",
            "sessionType": "Standard_Stream",
            "inputs": {
                "runAsEnabled": True,
                "runAsDefaultUser": "",
                "shellProfile": {"linux": "exec bash --login"},
            },
        },
    )
