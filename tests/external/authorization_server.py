"""An authorization server for the tests, made with Authlib's: run by an interpreter of its own.

`authorization_server.py PORT` serves on loopback: metadata (RFC 8414), a key set, dynamic client
registration (RFC 7591), the authorization code flow with PKCE, client credentials, and access
tokens as signed JWTs (RFC 9068) for the resource that the client names (RFC 8707). Everyone who
comes is `alice`, who agrees to everything. `/keys/rotate` takes a new key, as an operator would.
Imports nothing of the server under test.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import ClientMixin, grants, list_to_scope, scope_to_list
from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from flask import Flask, jsonify, request
from joserfc.jwk import KeySet, RSAKey

PORT = int(sys.argv[1])
ISSUER = f"http://127.0.0.1:{PORT}"
SCOPES = ["db:read", "db:write", "db:admin", "profile"]
app = Flask(__name__)
clients: dict[str, Client] = {}
codes: dict[str, Code] = {}
keys: list[RSAKey] = []


def new_key() -> None:
    keys.insert(0, RSAKey.generate_key(2048, {"kid": f"key-{len(keys)}", "use": "sig"}))


class User:
    def get_user_id(self) -> str:
        return "alice"


class Client(ClientMixin):
    """What a client registered."""

    def __init__(self, id: str, secret: str, metadata: dict[str, Any]) -> None:
        self.client_id, self.secret, self.metadata = id, secret, metadata

    def get_client_id(self) -> str:
        return self.client_id

    def get_default_redirect_uri(self) -> str | None:
        return self.metadata.get("redirect_uris", [None])[0]

    def get_allowed_scope(self, scope: str) -> str:
        return list_to_scope([name for name in scope_to_list(scope or "") if name in SCOPES])

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri in self.metadata.get("redirect_uris", [])

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == self.secret

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == self.metadata.get("token_endpoint_auth_method", "client_secret_basic")

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in ("authorization_code", "client_credentials")


class Code:
    """An authorization code, and what it stands for."""

    def __init__(self, code: str, asked: Any) -> None:
        payload = asked.payload
        self.code, self.client_id, self.scope = code, asked.client.client_id, payload.scope
        self.redirect_uri = payload.redirect_uri
        self.code_challenge = payload.data.get("code_challenge")
        self.code_challenge_method = payload.data.get("code_challenge_method")
        self.resource = payload.data.get("resource")

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope


class CodeGrant(grants.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ("none", "client_secret_basic", "client_secret_post")

    def save_authorization_code(self, code: str, request: Any) -> None:
        codes[code] = Code(code, request)

    def query_authorization_code(self, code: str, client: Client) -> Code | None:
        found = codes.get(code)
        return found if found is not None and found.client_id == client.client_id else None

    def delete_authorization_code(self, authorization_code: Code) -> None:
        del codes[authorization_code.code]

    def authenticate_user(self, authorization_code: Code) -> User:
        return User()


class Registration(ClientRegistrationEndpoint):
    def authenticate_token(self, request: Any) -> bool:
        return True

    def get_server_metadata(self) -> dict[str, Any]:
        return metadata().get_json()

    def save_client(self, client_info: Any, client_metadata: Any, request: Any) -> Client:
        made = Client(client_info["client_id"], client_info["client_secret"], dict(client_metadata))
        clients[made.client_id] = made
        return made


class Tokens(JWTBearerTokenGenerator):
    def get_jwks(self) -> dict[str, Any]:
        return keys[0].as_dict(private=True)

    def get_audiences(self, client: Client, user: Any, scope: str) -> list[str]:
        named = request.form.getlist("resource")
        return named or [client.client_id]

    def get_extra_claims(self, client: Any, grant_type: str, user: Any, scope: str) -> Any:
        return {"sources": request.form.get("sources", "towns").split()}


server = AuthorizationServer()
server.init_app(app, query_client=clients.get, save_token=lambda token, request: None)
server.register_grant(CodeGrant, [CodeChallenge(required=True)])
server.register_grant(grants.ClientCredentialsGrant)
server.register_endpoint(Registration)
server.register_token_generator("default", Tokens(ISSUER, expires_generator=lambda *_: 60))


@app.get("/.well-known/oauth-authorization-server")
def metadata() -> Any:
    return jsonify(
        issuer=ISSUER,
        authorization_endpoint=f"{ISSUER}/authorize",
        token_endpoint=f"{ISSUER}/token",
        registration_endpoint=f"{ISSUER}/register",
        jwks_uri=f"{ISSUER}/jwks",
        scopes_supported=SCOPES,
        response_types_supported=["code"],
        grant_types_supported=["authorization_code", "client_credentials"],
        token_endpoint_auth_methods_supported=[
            "none", "client_secret_basic", "client_secret_post",
        ],
        code_challenge_methods_supported=["S256"],
    )  # fmt: skip


@app.get("/jwks")
def jwks() -> Any:
    return jsonify(KeySet(keys).as_dict(private=False))


@app.post("/keys/rotate")
def rotate() -> Any:
    new_key()
    return jsonify(kid=keys[0].kid, at=time.time())


@app.post("/register")
def register() -> Any:
    return server.create_endpoint_response("client_registration")


@app.get("/authorize")
def authorize() -> Any:
    grant = server.get_consent_grant(end_user=User())
    return server.create_authorization_response(grant_user=User(), grant=grant)


@app.post("/token")
def token() -> Any:
    return server.create_token_response()


if __name__ == "__main__":
    import os

    # http on loopback: nothing here leaves this machine.
    os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
    new_key()
    app.run("127.0.0.1", PORT, threaded=True)
