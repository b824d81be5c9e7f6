"""How the processes of a stack are made: program, environment, files.

Invariant: a process that is started again gets the ports that it had before.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from caisson.stack import environment
from caisson.stack.data_folder import DataFolder
from caisson.stack.environment import Servers
from caisson.stack.service_process import ServiceProcess

Programs = Mapping[str, Sequence[str]]
Overrides = Mapping[str, dict[str, str]]

PROGRAMS: Programs = {
    name: (sys.executable, "-m", f"caisson.{name}") for name in ("gateway", "memory", "proxy", "runner")
}

_DRAIN_VARIABLE = "RUNNER_DRAIN_S"
_DRAIN_S = "20"
_STOP_WITHIN_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Makes service processes for one stack. `overrides` are settings by service, added to or replacing ours."""

    folder: DataFolder
    servers: Servers
    programs: Programs = field(default_factory=lambda: PROGRAMS)
    overrides: Overrides = field(default_factory=dict)

    def gateway(self, name: str, *, port: int) -> ServiceProcess:
        """Return a gateway; port 0 picks a free one."""

        def settings(bound: Mapping[str, str]) -> dict[str, str]:
            http_port = port or port_of(bound.get("http"))
            return environment.gateway(self.servers, ports_file=self.folder.ports_file(name), port=http_port)

        return self._process("gateway", name, settings)

    def proxy(self, name: str, *, upstreams: Path) -> ServiceProcess:
        """Return a proxy for the upstreams declared in a file."""

        def settings(bound: Mapping[str, str]) -> dict[str, str]:
            ports_file, port = self.folder.ports_file(name), port_of(bound.get("proxy"))
            return environment.proxy(self.servers, ports_file=ports_file, port=port, upstreams=upstreams.resolve())

        return self._process("proxy", name, settings)

    def memory(self, name: str) -> ServiceProcess:
        """Return a memory service with its index in the data folder."""

        def settings(_: Mapping[str, str]) -> dict[str, str]:
            ports_file = self.folder.ports_file(name)
            return environment.memory(self.servers, ports_file=ports_file, index=self.folder.index(name))

        return self._process("memory", name, settings)

    def runner(self, name: str, *, proxy: ServiceProcess) -> ServiceProcess:
        """Return a runner whose sandboxes reach `proxy`."""
        drain_s = self.overrides.get("runner", {}).get(_DRAIN_VARIABLE, os.environ.get(_DRAIN_VARIABLE, _DRAIN_S))

        def settings(_: Mapping[str, str]) -> dict[str, str]:
            base = environment.runner(
                self.servers,
                ports_file=self.folder.ports_file(name),
                name=name,
                workspaces=self.folder.workspaces(name),
                proxy_port=port_of(proxy.addresses.get("proxy")),
            )
            return base | {_DRAIN_VARIABLE: drain_s}

        return self._process("runner", name, settings, stop_within_s=float(drain_s) + _STOP_WITHIN_S)

    def platform_key_command(self) -> tuple[Sequence[str], Mapping[str, str]]:
        """Return the program and environment that make the first platform key."""
        base = environment.gateway(self.servers, ports_file=self.folder.ports_file("keys"), port=0)
        argv = (*self.programs["gateway"], "keys", "create", "--platform", "stack")
        return argv, base | self.overrides.get("gateway", {})

    def _process(
        self,
        service: str,
        name: str,
        settings: Callable[[Mapping[str, str]], dict[str, str]],
        *,
        stop_within_s: float = _STOP_WITHIN_S,
    ) -> ServiceProcess:
        return ServiceProcess(
            name,
            argv=self.programs[service],
            environment=lambda bound: settings(bound) | self.overrides.get(service, {}),
            ports_file=self.folder.ports_file(name),
            log=self.folder.log(name),
            stop_within_s=stop_within_s,
        )


def port_of(address: str | None) -> int:
    """Return the port of `host:port` or of a URL; 0, which picks a free one, when there is none yet."""
    return int(address.rsplit(":", 1)[1]) if address else 0
