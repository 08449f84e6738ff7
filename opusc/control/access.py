"""What lets us in, and whom we trust: never from programs or artifacts.

Environment: OPUSC_USER, OPUSC_PASSWORD, OPUSC_SSH_KEY (a file), OPUSC_CLIENT_CERT and OPUSC_CLIENT_KEY (files), for all
switches; else the entry of the host in ~/.netrc (or $NETRC). SSH also tries the agent and the usual key files.
"""

import netrc
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Access", "AccessError", "access_from"]


class AccessError(Exception):
    """Credentials are there and cannot be used: a sentence."""


@dataclass(frozen=True, slots=True)
class Access:
    """`ca` and `known_hosts` are files that replace the system's own; `insecure` believes anyone."""

    user: str | None = None
    password: str | None = None
    ssh_key: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    ca: str | None = None
    known_hosts: str | None = None
    insecure: bool = False
    agent: bool = True  # ask the SSH agent and look for the usual key files

    def __repr__(self) -> str:
        return f"Access(user={self.user!r}, insecure={self.insecure})"  # never the password


def access_from(
    host: str,
    *,
    user: str | None = None,
    ca: str | None = None,
    known_hosts: str | None = None,
    insecure: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> Access:
    """Credentials for a host. Raises AccessError for a .netrc that cannot be read."""
    name, password = user or environment.get("OPUSC_USER"), environment.get("OPUSC_PASSWORD")
    if password is None:
        found = _netrc(host, environment)
        if found is not None and (name is None or name == found[0]):
            name, password = found
    return Access(
        user=name,
        password=password,
        ssh_key=environment.get("OPUSC_SSH_KEY"),
        client_cert=environment.get("OPUSC_CLIENT_CERT"),
        client_key=environment.get("OPUSC_CLIENT_KEY"),
        ca=ca,
        known_hosts=known_hosts,
        insecure=insecure,
    )


def _netrc(host: str, environment: Mapping[str, str]) -> tuple[str | None, str | None] | None:
    path = Path(environment.get("NETRC") or Path(environment.get("HOME", "~")).expanduser() / ".netrc")
    if not path.is_file():
        return None
    try:
        entry = netrc.netrc(path).authenticators(host)
    except (netrc.NetrcParseError, OSError) as error:
        raise AccessError(f"{path} cannot be read: {error}") from None
    return None if entry is None else (entry[0] or None, entry[2] or None)
