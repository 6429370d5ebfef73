"""What shows that a form was sent from a page of the console: a token bound to its session."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final

FIELD: Final = "csrf_token"
"""The name of the hidden field that every form has."""
HEADER: Final = "x-csrf-token"
"""Where a script sends it, with a body that is no form."""
_OWN: Final = frozenset({None, "same-origin", "none"})


class Tokens:
    """Makes and checks tokens; those of a server that ended are none.

    A token is the HMAC-SHA-256 of the cookie under a key of this process, so that nothing is kept,
    and a page of another site, which cannot read the cookie, has none.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def of(self, cookie: str) -> str:
        """The token that forms of this cookie's owner carry."""
        text = cookie.encode("utf-8", "surrogatepass")
        return hmac.new(self._key, text, hashlib.sha256).hexdigest()

    def fits(self, cookie: str, token: str | None, *, site: str | None) -> bool:
        """Whether a form came from a page of ours.

        Args:
            cookie: that came with it; empty: none did.
            token: that the form carries.
            site: what the browser says of where it was sent (``Sec-Fetch-Site``), if anything.
        """
        if not cookie or site not in _OWN:
            return False
        given = (token or "").encode("utf-8", "surrogatepass")
        return hmac.compare_digest(given, self.of(cookie).encode())
