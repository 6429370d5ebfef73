"""CSRF tokens: they show that a form was sent from a page of the console."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final

FIELD: Final = "csrf_token"
"""The name of the hidden field that every form has."""
HEADER: Final = "x-csrf-token"
"""The header in which a script sends the token, with a body that is no form."""
_OWN: Final = frozenset({None, "same-origin", "none"})


class CsrfTokens:
    """Makes and checks tokens; those of an earlier process are invalid.

    A token is the HMAC-SHA-256 of the cookie under a key of this process, so that nothing is kept,
    and a page of another site, which cannot read the cookie, has none.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def of(self, cookie: str) -> str:
        """Return the token for the forms of this cookie's owner."""
        text = cookie.encode("utf-8", "surrogatepass")
        return hmac.new(self._key, text, hashlib.sha256).hexdigest()

    def fits(self, cookie: str, token: str | None, *, site: str | None) -> bool:
        """Return True when a form came from a page of the console.

        Args:
            cookie: of the request; empty: none.
            token: of the form.
            site: the browser's ``Sec-Fetch-Site`` header, if any.
        """
        if not cookie or site not in _OWN:
            return False
        call = (token or "").encode("utf-8", "surrogatepass")
        return hmac.compare_digest(call, self.of(cookie).encode())
