"""Decide which addresses are public: the one guard for dialling addresses that someone else names."""

from __future__ import annotations

import ipaddress
from typing import Final

_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
#: Networks that lead to IPv4 addresses by a translator or a tunnel, those that some versions of `ipaddress` take for
#: public ones, and the services of clouds: 168.63.129.16 (Azure), 192.0.0.192 (Oracle, in 192.0.0.0/24).
#: Reference: https://www.iana.org/assignments/iana-ipv6-special-registry.
_INSIDE: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        "64:ff9b::/96", "64:ff9b:1::/48", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16",
        "fec0::/10", "192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32",
    )
)  # fmt: skip


def is_public(text: str) -> bool:
    """Return whether an address is public, in any notation; False for a name or an address with a zone."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return False
        if address.ipv4_mapped is not None:
            return is_public(str(address.ipv4_mapped))
        if address not in _UNICAST:
            return False
    if any(address in network for network in _INSIDE if network.version == address.version):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)
