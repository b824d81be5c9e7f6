"""A tiny service for tests of the supervisor: `stand_in.py SERVICE` binds ports, announces them and drains.

It keeps to the agreement between services and supervisor: settings from the environment, addresses to
`*_ADMIN_PORT_FILE`, `/readyz`, and an orderly end on SIGTERM. `keys create …` prints a key.
"""

import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PROGRAMS = {name: (sys.executable, __file__, name) for name in ("gateway", "memory", "proxy", "runner")}
PORTS = {"gateway": ("http", "HTTP_PORT"), "proxy": ("proxy", "LISTEN_PORT")}


class Ready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(dict(os.environ)).encode())

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Say nothing."""


def listen(port: int) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", port), Ready)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main(service: str) -> None:
    setting = os.environ.get
    prefix = service.upper()
    if setting(f"{prefix}_STAND_IN_FAILS"):
        sys.exit("the stand-in was told to fail")
    addresses = {"admin": f"http://127.0.0.1:{listen(0).server_port}"}
    if service in PORTS:
        name, variable = PORTS[service]
        address = f"127.0.0.1:{listen(int(os.environ[f'{prefix}_{variable}'])).server_port}"
        addresses[name] = address if service == "proxy" else f"http://{address}"
    ports_file = Path(os.environ[f"{prefix}_ADMIN_PORT_FILE"])
    sys.stderr.write(f"{ports_file.stem} ready\n")
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    ports_file.with_suffix(".partial").write_text(json.dumps(addresses))
    ports_file.with_suffix(".partial").replace(ports_file)
    signal.sigwait({signal.SIGTERM})
    sys.stderr.write(f"{ports_file.stem} drained\n")


if __name__ == "__main__":
    if sys.argv[2:4] == ["keys", "create"]:
        sys.stdout.write("a key, as it is shown once:\nck_stand_in\n")
    else:
        main(sys.argv[1])
