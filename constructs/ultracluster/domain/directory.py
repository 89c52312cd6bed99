"""People of a directory: Active Directory or another LDAP server, asked by the nodes."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from ultracluster.domain.spec import Change, Setting, Spec
from ultracluster.domain.types import MANY, TOKENS, Entries, SecretArn, allowing, text
from ultracluster.domain.violations import Violation

_DOMAIN = r"^[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*$|^(DC|dc)=[a-zA-Z0-9_-]+(,(DC|dc)=[a-zA-Z0-9_-]+)*$"
RESERVED = {"id_provider": "ldap"}
"""What further settings cannot say otherwise (aws-parallelcluster 3.16.1, constants.py)."""


class DirectorySpec(Spec):
    """Users of Active Directory or another LDAP server, which all nodes ask by SSSD. It turns on passwords in SSH."""

    aws: ClassVar = "DirectoryService"

    domain_name: Annotated[
        str,
        text(_DOMAIN, "a domain such as corp.example.com, or DC=corp,DC=example,DC=com"),
        TOKENS,
        Setting(Change.STOPPED_NODES, ".DomainName"),
    ]
    """The domain, from which the search base is made."""
    domain_addr: Annotated[
        str,
        text(r"^ldaps?://[^ ,]+(,ldaps?://[^ ,]+)*$", "ldaps://HOST, further ones after a comma"),
        TOKENS,
        Setting(Change.STOPPED_NODES, ".DomainAddr"),
    ]
    """Addresses of the servers. Passwords cross the network in clear by ldap://."""
    password_secret_arn: Annotated[SecretArn, Setting(Change.STOPPED_NODES, ".PasswordSecretArn")]
    """Secret whose value is the password of the read-only user, as plain text. The deployment describes it to validate
    it, and the head node reads it."""
    domain_read_only_user: Annotated[
        str,
        allowing("a distinguished name such as cn=ReadOnly,ou=Users,dc=corp,dc=example,dc=com"),
        Setting(Change.STOPPED_NODES, ".DomainReadOnlyUser"),
    ]
    """The user that asks."""
    ldap_tls_ca_cert: Annotated[
        Annotated[str, text(r"^/.+", "an absolute path")] | None, Setting(Change.STOPPED_NODES, ".LdapTlsCaCert")
    ] = None
    """File on the nodes with the certificates of those who sign the servers' certificates; None: the system's."""
    ldap_tls_req_cert: Annotated[
        Literal["never", "allow", "try", "demand", "hard"], Setting(Change.STOPPED_NODES, ".LdapTlsReqCert")
    ] = "hard"
    """What becomes of a server's certificate that is not valid; all but demand and hard let anybody be the server."""
    ldap_access_filter: Annotated[
        Annotated[str, text(r"^\(.+\)$", "a filter such as (memberOf=...)")] | None,
        Setting(Change.STOPPED_NODES, ".LdapAccessFilter"),
    ] = None
    """Filter of who may log in; None: everybody of the domain."""
    generate_ssh_keys_for_users: Annotated[bool, Setting(Change.STOPPED_NODES, ".GenerateSshKeysForUsers")] = True
    """Whether a user gets an SSH key at the first login."""
    additional_sssd_configs: Annotated[
        Entries[str, str], MANY, Setting(Change.STOPPED_NODES, ".AdditionalSssdConfigs")
    ] = {}
    """Further settings of SSSD's domain."""


def violations(directory: DirectorySpec) -> Iterator[Violation]:
    """Yield what ParallelCluster's AdditionalSssdConfigsValidator would refuse."""
    for key, only in RESERVED.items():
        if (value := directory.additional_sssd_configs.get(key, only)) != only:
            yield Violation(("additional_sssd_configs", key), value, only, "ParallelCluster allows no other")
    provider = directory.additional_sssd_configs.get("access_provider", "ldap")
    if directory.ldap_access_filter is not None and provider != "ldap":
        reason = "ldap_access_filter is of that provider"
        yield Violation(("additional_sssd_configs", "access_provider"), provider, "ldap", reason)


def warnings(directory: DirectorySpec) -> Iterator[Violation]:
    """Yield what is worth a second look."""
    reason = "ParallelCluster turns on passwords in SSH on head and login nodes: see who reaches port 22"
    yield directory.violation("domain_name", "null for `directory`, with `users` instead", reason)
