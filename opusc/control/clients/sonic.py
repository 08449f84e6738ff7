"""SONiC-OCS: CONFIG_DB in Redis, one MULTI/EXEC for a change, under WATCH so that nobody else's change is run over.

What is read back is what is configured; whether the mirrors have followed is in STATE_DB, whose tables the published
models do not agree on.
"""

import json
from contextlib import suppress
from typing import Any

from opusc.backends.sonic import BACKEND
from opusc.backends.switch_files import Pairs
from opusc.control.access import Access
from opusc.control.device import Garbled, Held, NoEntry, Refused, Unreachable, Untrusted
from opusc.control.places import Place
from opusc.plan.plan import Switch

__all__ = ["Sonic"]

_CONFIG_DB = 4
_TABLE = "OCS_CROSS_CONNECT"


class Sonic:
    """One connection."""

    def __init__(self, switch: Switch, place: Place, access: Access, reply: int) -> None:
        import redis

        self._switch, self._redis = switch, redis
        [wire] = [wire for wire in BACKEND.wires if wire.name == "patch"]
        assert wire.change is not None
        self._change = wire.change
        options: dict[str, Any] = {}
        if place.tls:
            verify = "none" if access.insecure else "required"
            options = {"ssl": True, "ssl_cert_reqs": verify, "ssl_check_hostname": not access.insecure}
            options |= {"ssl_ca_certs": access.ca} if access.ca else {}
        self._client: Any = redis.Redis(
            host=place.host,
            port=place.port,
            db=_CONFIG_DB,
            username=access.user if access.password else None,
            password=access.password,
            socket_timeout=reply / 1000,
            socket_connect_timeout=reply / 1000,
            decode_responses=True,
            **options,
        )
        self._do(self._client.ping)

    def read(self) -> Held:
        return frozenset(self._do(self._rows).values())

    def change(self, disconnect: Pairs, connect: Pairs) -> None:
        self._do(lambda: self._transact(json.loads(self._change(self._switch, disconnect, connect))))

    def close(self) -> None:
        with suppress(self._redis.RedisError):
            self._client.close()

    def _rows(self) -> dict[str, tuple[str, str]]:
        found = {}
        for key in self._client.scan_iter(match=f"{_TABLE}|*", count=1000):
            row = self._client.hgetall(key)
            if not row:
                continue  # gone since it was listed
            try:
                found[key] = (row["a_side"], row["b_side"])
            except KeyError:
                raise Garbled(f"{key} has no a_side and b_side") from None
        return found

    def _transact(self, steps: list[dict[str, Any]]) -> None:
        """The steps of a patch. Rows that change meanwhile, or are not as the change expects, refuse it."""
        keys = {step["path"]: f"{_TABLE}|{step['path'].removeprefix(f'/{_TABLE}/')}" for step in steps}
        with self._client.pipeline(transaction=True) as batch:
            batch.watch(*keys.values())
            for step in steps:
                there = batch.exists(keys[step["path"]])
                if bool(there) != (step["op"] == "remove"):
                    raise Refused(f"{keys[step['path']]} {'appeared' if there else 'vanished'} since it was read")
            batch.multi()
            for step in steps:
                if step["op"] == "remove":
                    batch.delete(keys[step["path"]])
                else:
                    batch.hset(keys[step["path"]], mapping=step["value"])
            batch.execute()

    def _do(self, work: Any) -> Any:
        errors = self._redis.exceptions
        try:
            return work()
        except errors.WatchError:
            raise Refused("somebody else changed the same cross-connects meanwhile") from None
        except (errors.AuthenticationError, errors.AuthorizationError, errors.NoPermissionError) as error:
            raise NoEntry(str(error)) from None
        except errors.TimeoutError:
            raise Unreachable("no answer in time") from None
        except errors.ConnectionError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise Untrusted(str(error)) from None
            raise Unreachable(str(error)) from None
        except errors.ResponseError as error:
            if "NOAUTH" in str(error) or "WRONGPASS" in str(error):
                raise NoEntry(str(error)) from None
            raise Refused(str(error)) from None
        except errors.RedisError as error:
            raise Unreachable(str(error)) from None
