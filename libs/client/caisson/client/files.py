"""Calls about what a run leaves: whole outputs, and the files of its workspace."""

from collections.abc import AsyncGenerator
from typing import Literal
from urllib.parse import quote

import httpx

from caisson.client.answers import unreachable
from caisson.client.calls import Call, refused, run_path, segment
from caisson.client.errors import ApiError
from caisson.client.models import StoredFile
from caisson.client.pages import parse
from caisson.client.transport import Transport

StreamName = Literal["stdout", "stderr"]
_PARTIAL_CONTENT = 206
_RANGE_NOT_SATISFIABLE = 416


class FileCalls:
    """What a caller reads from a run, and puts into it."""

    _transport: Transport

    async def output(
        self, run_id: str, step_id: str, stream: StreamName, *, start: int = 0
    ) -> AsyncGenerator[bytes, None]:
        """Iterate over the bytes of a step's whole output from byte `start` on."""
        path = f"{run_path(run_id)}/steps/{segment(step_id, field='step_id')}/{stream}"
        call = Call(method="GET", path=path, headers={"Range": f"bytes={start}-"} if start else {})
        try:
            async with self._transport.open(call) as response:
                skip = 0 if response.status_code == _PARTIAL_CONTENT else start
                async for chunk in response.aiter_bytes():
                    if skip < len(chunk):
                        yield chunk[skip:]
                    skip = max(0, skip - len(chunk))
        except httpx.RequestError as error:
            raise unreachable(error, call) from error
        except ApiError as error:
            if error.status != _RANGE_NOT_SATISFIABLE:
                raise

    async def list_files(self, run_id: str) -> list[StoredFile]:
        """List the workspace as of the last checkpoint."""
        answer = await self._transport.get(f"{run_path(run_id)}/files")
        items = answer.get("items", []) if isinstance(answer, dict) else answer
        return [parse(StoredFile, item) for item in items]

    async def read_file(self, run_id: str, path: str) -> bytes:
        """Return a file of the workspace as of the last checkpoint."""
        response = await self._transport.send(Call(method="GET", path=f"{run_path(run_id)}/files/{_file(path)}"))
        return response.content

    async def write_file(self, run_id: str, path: str, content: bytes) -> None:
        """Put a file into the workspace of a run that is interactive or not started yet."""
        target = f"{run_path(run_id)}/files/{_file(path)}"
        await self._transport.send(Call(method="PUT", path=target, content=content))


def _file(path: str) -> str:
    if any(part in {"", ".", ".."} for part in path.split("/")):
        raise refused("path", "must be relative, without empty parts, '.' or '..'")
    return quote(path, safe="/")
