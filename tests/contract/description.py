"""GitHub's own description of its API, which every exchange is held against."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from openapi_core import Config, OpenAPI
from openapi_core.exceptions import OpenAPIError
from openapi_core.templating.responses.exceptions import ResponseNotFound
from openapi_core.testing import MockRequest, MockResponse


class Description:
    """The operations in openapi.json; what is not among them counts as a violation. Errors are described for some
    operations only, though every one may answer with them."""

    def __init__(self) -> None:
        spec = json.loads(Path(__file__).with_name("openapi.json").read_bytes())
        self._host = spec["servers"][0]["url"]
        # The description itself is GitHub's to check, and takes a minute.
        self._checked = OpenAPI.from_dict(spec, config=Config(spec_validator_cls=None))

    def violations(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes,
        status: int,
        headers: Mapping[str, str],
        answer: bytes,
    ) -> list[str]:
        """What of a request and its answer is not as described."""
        request = MockRequest(
            self._host,
            method.lower(),
            path,
            args=dict(query),
            data=body or None,
            content_type="application/json" if body else "",
        )
        found = []
        try:
            self._checked.validate_request(request)
        except OpenAPIError as error:
            found.append(f"{method} {path}: {_told(error)}")
        content_type = headers.get("Content-Type", "application/json").split(";")[0]
        response = MockResponse(answer, status_code=status, headers=dict(headers), content_type=content_type)
        try:
            self._checked.validate_response(request, response)
        except ResponseNotFound:
            if status < 400:
                found.append(f"{method} {path} -> {status}: is not described")
        except OpenAPIError as error:
            found.append(f"{method} {path} -> {status}: {_told(error)}")
        return found


def _told(error: BaseException) -> str:
    """An error with what it was raised from, since openapi-core keeps the sentence there."""
    parts = [f"{type(error).__name__}: {error}"]
    parts += [str(each) for each in getattr(error.__cause__, "schema_errors", [])]
    if error.__cause__ is not None:
        parts.append(str(error.__cause__))
    return "; ".join(parts)[:1500]
