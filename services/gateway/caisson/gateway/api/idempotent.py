"""`Idempotency-Key` on any POST: one effect, one answer, replayed."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from caisson.common.errors import CaissonError, InvalidInput
from caisson.common.ids import new_id
from caisson.gateway.api.callers import Caller
from caisson.gateway.domain.idempotency import IdempotencyStore, Reserved, Stored, check_key, fingerprint, scope_of

_REPLAYED = "Idempotency-Replayed"
_KEPT_HEADERS = ("location", "content-type")


class Idempotency:
    """Runs an action once per key. The object it makes gets its id with the reservation: a repeat after a crash
    meets the same object instead of making another."""

    def __init__(self, store: IdempotencyStore) -> None:
        self._store = store

    async def once(
        self,
        request: Request,
        caller: Caller,
        prefix: str,
        action: Callable[[str], Awaitable[Response]],
        *,
        about: str | None = None,
        remember: Callable[[bytes], bytes] = bytes,
    ) -> Response:
        """Run `action(object_id)`, or replay its stored answer. An answer `about` an object that exists has its id;
        `remember` may take out of an answer what must not be stored.

        Raises:
            KeyReused: the key came with another body or path.
            InProgress: the first request has not been answered.
        """
        given = request.headers.getlist("idempotency-key")
        object_id = about or new_id(prefix)
        if not given:
            return await action(object_id)
        if len(given) > 1:
            raise InvalidInput("given more than once", field="Idempotency-Key")
        key = check_key(given[0])
        principal = caller.principal
        scope = scope_of(principal)
        path = request.url.path.encode()
        scopes = ",".join(request.headers.getlist("caisson-scopes")).encode()
        digest = fingerprint(b"POST", path, scopes, await request.body())
        taken = await self._store.reserve(scope, key, fingerprint=digest, object_id=object_id)
        match taken:
            case Stored():
                return Response(taken.body, status_code=taken.status, headers={**taken.headers, _REPLAYED: "true"})
            case Reserved():
                return await self._act(scope, key, taken.object_id, action, remember)

    async def _act(
        self,
        scope: str,
        key: str,
        object_id: str,
        action: Callable[[str], Awaitable[Response]],
        remember: Callable[[bytes], bytes],
    ) -> Response:
        try:
            response = await action(object_id)
        except CaissonError as error:
            await (self._store.unlock if error.retryable else self._store.forget)(scope, key)
            raise
        except BaseException:
            await asyncio.shield(self._store.unlock(scope, key))
            raise
        headers = {name: value for name, value in response.headers.items() if name in _KEPT_HEADERS}
        await self._store.store(
            scope, key, Stored(status=response.status_code, headers=headers, body=remember(bytes(response.body)))
        )
        return response
