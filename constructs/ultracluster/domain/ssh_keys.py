"""SSH public keys, as lines of authorized_keys have them."""

import base64
import binascii

TYPES = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-rsa",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
)
"""Types that OpenSSH of all operating systems takes; DSA is gone (https://www.openssh.com/txt/release-10.0)."""
ALLOWED = "a line of a .pub file: TYPE BASE64 COMMENT"
SMALLEST_RSA = 2048
_ED25519_BYTES = 32
_POINT_BYTES = {"nistp256": 65, "nistp384": 97, "nistp521": 133}


def fault(line: str) -> str:
    """Return what is wrong with a public key; empty: nothing.

    The layout of the part in Base64: RFC 4253 6.6, RFC 5656 3.1, RFC 8709 4, OpenSSH's PROTOCOL.u2f.
    """
    if "PRIVATE KEY" in line:
        return "a private key, which belongs to its owner alone: replace it by a new one"
    if not line.isprintable():
        return "more than one line"
    kind, *rest = line.split(" ")
    if kind not in TYPES:
        has_options = any(f" {each} " in line for each in TYPES)
        return "options before the key" if has_options else f"no type of key first: {', '.join(TYPES)}"
    try:
        parts = _parts(base64.b64decode(rest[0], validate=True))
    except (IndexError, binascii.Error, ValueError):
        return "the part after the type is not complete"
    if parts[0] != kind.encode():
        return f"a key of the type {parts[0].decode(errors='replace')!r}, not {kind}"
    return _of_numbers(kind, parts[1:])


def blob(line: str) -> str:
    """Return what identifies a public key: the line without its comment."""
    return " ".join(line.split()[:2])


def _parts(content: bytes) -> list[bytes]:
    """Return the parts of a key, each of which follows its length.

    Raises:
        ValueError: A part is cut off, or there is none.
    """
    parts = []
    while content:
        size = int.from_bytes(content[:4], "big")
        if len(content) < 4 + size:
            raise ValueError("cut off")
        parts.append(content[4 : 4 + size])
        content = content[4 + size :]
    if not parts:
        raise ValueError("empty")
    return parts


def _of_numbers(kind: str, parts: list[bytes]) -> str:
    """Return what is wrong with the numbers of a key."""
    broken = f"not the numbers of a {kind} key"
    if kind.startswith("sk-"):
        parts = parts[:-1]  # without the application
    if kind == "ssh-rsa":
        if len(parts) != 2:  # noqa: PLR2004 - exponent and modulus
            return broken
        bits = int.from_bytes(parts[1], "big").bit_length()
        return f"an RSA key of {bits} bits; {SMALLEST_RSA} are the least" if bits < SMALLEST_RSA else ""
    if "ed25519" in kind:
        is_whole = [len(each) for each in parts] == [_ED25519_BYTES]
    else:
        curve = kind.removeprefix("sk-").removesuffix("@openssh.com").removeprefix("ecdsa-sha2-")
        is_whole = [curve.encode(), _POINT_BYTES[curve]] == [*parts[:1], *map(len, parts[1:])]
    return "" if is_whole else broken
