"""An OpenID Connect provider on this machine: one person, one client, the code flow with PKCE, a logout.

It refuses what a provider has to refuse (OpenID Connect Core 1.0, sections 3.1.2 and 3.1.3): another client, secret or
redirect address, a code that is used twice, a PKCE verifier that does not fit; `refused` says what it did not like.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, RSAKey

CLIENT, SECRET = "groundwork", "a client's secret of these tests"
FORM = (
    '<!doctype html><html lang="en"><title>Provider</title><form method="post"><button>Continue as {}</button></form>'
)


class Refused(Exception):
    """A request that the provider answers with 400 and a reason."""


class Provider:
    """`person` are the claims it vouches for, `lifetime` the seconds its identity tokens hold."""

    def __init__(self, person: dict[str, str]) -> None:
        self.person, self.lifetime, self.redirect = person, 3600, ""
        self.refused: list[str] = []
        self.logouts = 0
        self._codes: dict[str, dict[str, str]] = {}
        self._keys = KeySet([RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})])
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.provider = self
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Take the provider away."""
        self._server.shutdown()
        self._server.server_close()

    def secrets(self) -> str:
        """Streamlit's secrets for this provider; Streamlit fills in its own port."""
        return f"""[auth]
redirect_uri = "http://127.0.0.1:{{port}}/oauth2callback"
cookie_secret = "{secrets.token_hex(32)}"
client_id = "{CLIENT}"
client_secret = "{SECRET}"
server_metadata_url = "{self.url}/.well-known/openid-configuration"
"""

    def configuration(self) -> dict[str, object]:
        """The first thing that clients learn (OpenID Connect Discovery 1.0, section 3)."""
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "end_session_endpoint": f"{self.url}/logout",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        }

    def keys(self) -> dict[str, object]:
        """The public keys that identity tokens are checked with."""
        return dict(self._keys.as_dict(private=False))

    def asked(self, query: dict[str, str]) -> None:
        """Check a request for a login."""
        expected = {"client_id": CLIENT, "redirect_uri": self.redirect, "response_type": "code"}
        check(expected.items() <= query.items(), f"login of {query}")
        check("openid" in query.get("scope", "").split(), "no openid in the scope")
        check(query.get("code_challenge_method") == "S256" and bool(query.get("nonce")), "no PKCE or no nonce")

    def code(self, query: dict[str, str]) -> str:
        """Where a person goes who has agreed."""
        self.asked(query)
        code = secrets.token_urlsafe()
        self._codes[code] = query
        return f"{self.redirect}?{urlencode({'code': code, 'state': query['state']})}"

    def tokens(self, form: dict[str, str], authorization: str) -> dict[str, object]:
        """The identity token for a code."""
        known = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        check(authorization == f"Basic {known}", "not the client")
        query = self._codes.pop(form.get("code", ""), None)
        check(query is not None, "a code that is not known, or used before")
        check(form.get("redirect_uri") == query["redirect_uri"], "another redirect address")
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        check(challenge == query["code_challenge"], "the verifier does not fit the challenge")
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "nonce": query["nonce"], "iat": now, "exp": now + self.lifetime}
        token = jwt.encode({"alg": "RS256", "kid": "one"}, {**claims, **self.person}, self._keys)
        return {"access_token": secrets.token_urlsafe(), "token_type": "Bearer", "expires_in": 60, "id_token": token}

    def log_out(self, query: dict[str, str]) -> str:
        """Where a person goes who has logged out (OpenID Connect RP-Initiated Logout 1.0, section 2)."""
        check(query.get("post_logout_redirect_uri") == self.redirect, "another address after the logout")
        try:
            jwt.decode(query.get("id_token_hint", ""), self._keys, algorithms=["RS256"])
        except (JoseError, ValueError) as error:
            raise Refused("a hint that is no token of ours") from error
        self.logouts += 1
        return self.redirect


def check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Refused(otherwise)


class _Handler(BaseHTTPRequestHandler):
    """The requests to the provider and its responses."""

    def log_message(self, *args):
        """Say nothing."""

    @property
    def provider(self) -> Provider:
        return self.server.provider

    def do_GET(self):
        self._answer(self._get)

    def do_POST(self):
        self._answer(self._post)

    def _answer(self, reply):
        url = urlsplit(self.path)
        try:
            reply(url.path, dict(parse_qsl(url.query)))
        except Refused as error:
            self.provider.refused.append(str(error))
            self._send(400, "text/plain", str(error))

    def _get(self, path, query):
        if path == "/.well-known/openid-configuration":
            self._send(200, "application/json", json.dumps(self.provider.configuration()))
        elif path == "/keys":
            self._send(200, "application/json", json.dumps(self.provider.keys()))
        elif path == "/authorize":
            self.provider.asked(query)
            self._send(200, "text/html", FORM.format(self.provider.person["name"]))
        elif path == "/logout":
            self._redirect(self.provider.log_out(query))
        else:
            self._send(404, "text/plain", "")

    def _post(self, path, query):
        form = dict(parse_qsl(self.rfile.read(int(self.headers.get("content-length", 0))).decode()))
        if path == "/authorize":
            self._redirect(self.provider.code(query))
        else:
            tokens = self.provider.tokens(form, self.headers.get("authorization", ""))
            self._send(200, "application/json", json.dumps(tokens))

    def _redirect(self, address):
        self.send_response(302)
        self.send_header("location", address)
        self.send_header("content-length", "0")
        self.end_headers()

    def _send(self, status, kind, text):
        data = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
