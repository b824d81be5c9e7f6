"""What every exchange works with, in one value."""

from dataclasses import dataclass
from typing import Protocol

from caisson.proxy.domain.credentials import Vault
from caisson.proxy.domain.identity import Contexts
from caisson.proxy.domain.links import Links
from caisson.proxy.domain.policies import Policies
from caisson.proxy.domain.records import Recorder


class Declared(Protocol):
    """The upstreams as last loaded."""

    @property
    def policies(self) -> Policies:
        """The policies by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The contexts, the policies, the credentials, the connections and the records of one proxy."""

    contexts: Contexts
    declared: Declared
    vault: Vault
    links: Links
    recorder: Recorder
    channel_key: bytes
