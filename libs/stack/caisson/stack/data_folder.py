"""The folder that holds everything a stack keeps: servers' data, generated secrets, logs.

Invariant: one stack at a time works on a folder (the kernel releases the lock of a process that died), and what
is secret in it is readable by its owner alone.
"""

import fcntl
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from secrets import token_hex

from nacl.encoding import Base64Encoder
from nacl.public import PrivateKey

from caisson.stack.children import StackError
from caisson.stack.nats import SERVICES
from caisson.stack.private_files import write_private


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyring:
    """The secrets of one stack, made on its first start."""

    nats_passwords: dict[str, str]
    postgres_password: str
    channel_key: str
    proxy_private_key: str
    proxy_public_key: str


class DataFolder:
    """Paths below one folder, its lock and its secrets."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.postgres = self.path / "postgres"
        self.nats = self.path / "nats"
        self.logs = self.path / "logs"
        self.client_file = self.path / "client.json"
        self.platform_key_file = self.path / "platform-key"
        self._lock: int | None = None

    def log(self, name: str) -> Path:
        """Where a service's log goes."""
        self.logs.mkdir(exist_ok=True, mode=0o700)
        return self.logs / f"{name}.log"

    def ports_file(self, name: str) -> Path:
        """Where a service writes its addresses."""
        return self._below("ports") / f"{name}.json"

    def workspaces(self, name: str) -> Path:
        """Where a runner mounts its workspaces."""
        return self._below("workspaces") / name

    def index(self, name: str) -> Path:
        """Where a memory service keeps its index."""
        return self._below("memory") / name

    def secrets(self, service: str) -> Path:
        """A folder of secret files, for commands that work beside a service: `$CAISSON_SECRETS_DIR`."""
        folder = self._below("secrets") / service
        folder.mkdir(exist_ok=True, mode=0o700)
        return folder

    def empty_upstreams(self) -> Path:
        """A declaration of no upstreams, for a stack that was given none."""
        file = self.path / "no-upstreams.yaml"
        file.write_text("upstreams: {}\n")
        return file

    def lock(self) -> None:
        """Take the folder.

        Raises:
            StackError: when another stack has it, naming its process.
        """
        self.path.mkdir(parents=True, exist_ok=True, mode=0o711)
        lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(lock, 32).decode() or "unknown"
            os.close(lock)
            raise StackError(f"another stack (process {holder}) is running on {self.path}") from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        self._lock = lock

    def unlock(self) -> None:
        """Give the folder back."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def keyring(self) -> Keyring:
        """Return the folder's secrets; the first call makes them, a later one those of services new since."""
        file = self.path / "secrets.json"
        kept = json.loads(file.read_text()) if file.exists() else asdict(_new_keyring())
        known: dict[str, str] = kept["nats_passwords"]
        kept["nats_passwords"] = {name: known.get(name) or token_hex(32) for name in SERVICES}
        if not file.exists() or known != kept["nats_passwords"]:
            write_private(file, kept)
        return Keyring(**kept)

    def _below(self, name: str) -> Path:
        folder = self.path / name
        folder.mkdir(exist_ok=True, mode=0o700)
        return folder


def _new_keyring() -> Keyring:
    private = PrivateKey.generate()
    return Keyring(
        nats_passwords={name: token_hex(32) for name in SERVICES},
        postgres_password=token_hex(32),
        channel_key=token_hex(32),
        proxy_private_key=private.encode(Base64Encoder).decode(),
        proxy_public_key=private.public_key.encode(Base64Encoder).decode(),
    )
