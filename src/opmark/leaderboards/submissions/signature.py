"""Signatures of submissions: a submitter's Ed25519 key, and the check that an archive was signed with it.

The signature covers the entry's name, the archive and the time of signing, so that nobody can hand in an older archive
of somebody else once more.
"""

import hashlib
import os
import tempfile
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from opmark.core.errors import ContentError, OpMarkError, SubmissionError
from opmark.core.reading import read_bytes

KEY_FILE = "submitter.pem"
_PURPOSE = "opmark submission 1"
_KEY_BYTES, _SIGNATURE_BYTES = 32, 64
_FILE_BYTES_AT_MOST = 2**16


@dataclass(frozen=True)
class SubmitterKey:
    """A private key; `public` is the hexadecimal public key, to which entries belong."""

    private: Any

    @cached_property
    def public(self) -> str:
        """The public key, in hex."""
        found: bytes = self.private.public_key().public_bytes_raw()
        return found.hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedSubmission:
    """A packed submission with its proof of origin. `signed_at` is in seconds since 1970; key and signature are hex."""

    name: str
    archive: bytes
    public_key: str
    signed_at: int
    signature: str


def default_key_path() -> Path:
    """The file of this user's key."""
    import platformdirs

    return platformdirs.user_config_path("opmark") / KEY_FILE


def own_key(path: Path | None = None) -> SubmitterKey:
    """The key in `path` (default: this user's), made at first use and readable by its owner only.

    Raises `ContentError` for a file that holds no such key, `OpMarkError` where it cannot be written.
    """
    place = path or default_key_path()
    if not place.exists():
        _make_key(place)
    return _read_key(place)


def sign(name: str, archive: bytes, key: SubmitterKey, *, signed_at: int | None = None) -> SignedSubmission:
    """Sign the packed submission called `name`."""
    at = int(time.time()) if signed_at is None else signed_at
    signature: bytes = key.private.sign(_message(name, archive, at))
    return SignedSubmission(name=name, archive=archive, public_key=key.public, signed_at=at, signature=signature.hex())


def verify(signed: SignedSubmission) -> None:
    """Check the signature. Raises `SubmissionError` where name, archive, time and key do not belong together."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = _bytes(signed.public_key, _KEY_BYTES, "public key")
    signature = _bytes(signed.signature, _SIGNATURE_BYTES, "signature")
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(
            signature, _message(signed.name, signed.archive, signed.signed_at)
        )
    except (InvalidSignature, ValueError):
        raise SubmissionError("its signature does not fit its key, name and files", where=signed.name) from None


def _message(name: str, archive: bytes, signed_at: int) -> bytes:
    return "\n".join((_PURPOSE, name, str(signed_at), hashlib.sha256(archive).hexdigest(), "")).encode()


def _bytes(text: str, count: int, what: str) -> bytes:
    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if len(found) != count or found.hex() != text:
        raise SubmissionError(f"its {what} is not {count} bytes in hexadecimal")
    return found


def _make_key(path: Path) -> None:
    """Write a new key; of two processes that write at once, the first one wins."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    text = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # readable by its owner only
        with os.fdopen(handle, "wb") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            return
    except OSError as error:
        raise OpMarkError(
            f"the key cannot be written: {error.strerror}", where=str(path), hint="name another file with --key"
        ) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def _read_key(path: Path) -> SubmitterKey:
    from cryptography.exceptions import InternalError, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        found = serialization.load_pem_private_key(read_bytes(path, at_most=_FILE_BYTES_AT_MOST), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm, InternalError):
        raise ContentError("not a private key without a password, in PEM", where=str(path)) from None
    if not isinstance(found, Ed25519PrivateKey):
        raise ContentError("not an Ed25519 key", where=str(path), hint="remove --key to use a new one")
    return SubmitterKey(private=found)
