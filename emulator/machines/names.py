"""The DNS of a VPC: private hosted zones, names of instances and databases, and at once that a name does not exist.

https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/hosted-zones-private.html,
https://docs.aws.amazon.com/vpc/latest/userguide/AmazonDNS-concepts.html
"""

from __future__ import annotations

import socket
import socketserver
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, cast

from dnslib import PTR, QTYPE, RCODE, RR, A, DNSError, DNSRecord
from moto.ec2.models import ec2_backends
from moto.ec2.models.instances import Instance
from moto.route53.models import FakeZone, route53_backends

from emulator.aws import ACCOUNT
from emulator.moto_patches.rds import private_address

_TTL: Final = 60


@dataclass(frozen=True)
class Names:
    """The names that are known in a VPC.

    Attributes:
        region: The VPC's AWS Region.
        vpc_id: Its id.
    """

    region: str
    vpc_id: str

    def answer(self, query: DNSRecord) -> DNSRecord:
        """Return the response to a query for an address or a name; of what exists in another type, it is empty."""
        reply, name = query.reply(), str(query.q.qname).lower()
        records = self._of_zone(name) or self._of_instances(name) or self._of_databases(name)
        if not records:
            reply.header.rcode = RCODE.NXDOMAIN
        for record in records:
            if query.q.qtype in (record.rtype, QTYPE.ANY):
                reply.add_answer(record)
        return reply

    def _of_zone(self, name: str) -> list[RR]:
        """Return the addresses in the private hosted zone with the longest name that a name ends in."""
        zones: list[FakeZone] = [
            zone
            for zone in list(route53_backends[ACCOUNT]["aws"].zones.values())
            if zone.private_zone and any(vpc.get("vpc_id") == self.vpc_id for vpc in zone.vpcs)
        ]
        fitting = [zone for zone in zones if f".{name}".endswith(f".{zone.name.lower()}")]
        for zone in sorted(fitting, key=lambda zone: -len(zone.name))[:1]:
            return [
                RR(name, QTYPE.A, rdata=A(value), ttl=int(record.ttl or _TTL))
                for record in zone.rrsets
                if record.type == "A" and record.name.lower().rstrip(".") == name.rstrip(".")
                for value in record.records
            ]
        return []

    def _of_instances(self, name: str) -> list[RR]:
        """Return the address of an instance's private DNS name, or the name of its address."""
        for instance in ec2_backends[ACCOUNT][self.region].all_running_instances():
            if instance.vpc_id == self.vpc_id and instance.private_ip:
                private_name = f"{instance.private_dns_name}."
                if name == private_name:
                    return [RR(name, QTYPE.A, rdata=A(instance.private_ip), ttl=_TTL)]
                if name == _reverse(instance):
                    return [RR(name, QTYPE.PTR, rdata=PTR(private_name), ttl=_TTL)]
        return []

    def _of_databases(self, name: str) -> list[RR]:
        """Return the address of the endpoint of a database instance."""
        address = private_address(self.region, self.vpc_id, name.rstrip("."))
        return [RR(name, QTYPE.A, rdata=A(address), ttl=_TTL)] if address else []


class _Server(socketserver.ThreadingUDPServer):
    daemon_threads = True

    def __init__(self, listener: socket.socket, names: Names) -> None:
        super().__init__(("127.0.0.1", 0), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener.dup()
        self.names = names


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        """Answer one query; what is none gets no answer."""
        data, listener = self.request
        server = cast(_Server, self.server)
        with suppress(DNSError):
            listener.sendto(server.names.answer(DNSRecord.parse(data)).pack(), self.client_address)


def serve(listener: socket.socket, region: str, vpc_id: str) -> socketserver.BaseServer:
    """Answer queries on a UDP socket until the server is shut down; each in a thread.

    Args:
        listener: A bound socket; the caller closes it, when it likes.
        region: The VPC's AWS Region.
        vpc_id: Its id.
    """
    server = _Server(listener, Names(region, vpc_id))

    def live() -> None:
        with server:
            server.serve_forever()

    threading.Thread(target=live, name=f"DNS of {vpc_id}", daemon=True).start()
    return server


def _reverse(instance: Instance) -> str:
    return ".".join(reversed(str(instance.private_ip).split("."))) + ".in-addr.arpa."
