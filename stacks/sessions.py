"""Documents of Session Manager: who a session is, and where it leads."""

from collections.abc import Mapping
from typing import Any

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
    content = {
        "description": f"A shell on a node of {cluster}, as the user of the IAM tag SSMSessionRunAs",
        "sessionType": "Standard_Stream",
        "inputs": {
            "runAsEnabled": True,
            "runAsDefaultUser": "",
            "shellProfile": {"linux": "exec bash --login"},
        },
    }
    return _document(scope, "Sessions", names.session_document(cluster), content)


def add_ssh_document(scope: Construct, cluster: str) -> ssm.CfnDocument:
    """Add the document of a cluster's sessions that carry SSH: they lead to sshd, and nowhere else.

    Systems Manager's agent connects to the port as root, in any user's session, and the firewall of nodes lets root
    to the tunnels to EFS. So a session has no parameter, unlike those of AWS-StartSSHSession, whose port is free.
    Without ``type`` the plugin takes the connection from its standard streams.
    https://github.com/aws/amazon-ssm-agent/blob/mainline/agent/session/plugins/port/port.go,
    https://github.com/aws/session-manager-plugin/blob/mainline/src/sessionmanagerplugin/session/portsession/portsession.go
    """
    content = {
        "description": f"SSH to a node of {cluster}",
        "sessionType": "Port",
        "properties": {"portNumber": "22"},
    }
    return _document(scope, "Ssh", names.ssh_document(cluster), content)


def _document(scope: Construct, construct_id: str, name: str, content: Mapping[str, Any]) -> ssm.CfnDocument:
    return ssm.CfnDocument(
        scope,
        construct_id,
        name=name,
        document_type="Session",
        document_format="JSON",
        update_method="NewVersion",
        content={"schemaVersion": "1.0", **content},
    )
