"""Makes openapi.json: of GitHub's own description of its API, the operations that the bot asks for and what they need.

    npm install --prefix FOLDER @octokit/openapi
    python tests/contract/subset_openapi.py FOLDER/node_modules/@octokit/openapi

The description is published under the MIT licence: https://github.com/github/rest-api-description
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TARGET = Path(__file__).with_name("openapi.json")
OPERATIONS = {
    "/user": ("get",),
    "/repos/{owner}/{repo}/statuses/{sha}": ("post",),
    "/repos/{owner}/{repo}/commits/{ref}/status": ("get",),
    "/repos/{owner}/{repo}/pulls": ("get",),
    "/repos/{owner}/{repo}/pulls/{pull_number}": ("get",),
    "/repos/{owner}/{repo}/issues/{issue_number}/comments": ("get", "post"),
    "/repos/{owner}/{repo}/issues/comments/{comment_id}": ("get", "patch", "delete"),
}
#: What only people read.
_PROSE = {"description", "summary", "example", "examples", "externalDocs", "tags", "title"}


def main() -> None:
    package = Path(sys.argv[1])
    whole = json.loads((package / "generated" / "api.github.com.json").read_bytes())
    version = json.loads((package / "package.json").read_bytes())["version"]
    paths = {
        path: {
            method: bare(operation)
            for method, operation in whole["paths"][path].items()
            if method in methods or method == "parameters"
        }
        for path, methods in OPERATIONS.items()
    }
    subset = {
        "openapi": whole["openapi"],
        "info": {
            "title": whole["info"]["title"],
            "version": whole["info"]["version"],
            "license": whole["info"]["license"],
            "x-made-by": f"subset_openapi.py, from @octokit/openapi {version}",
        },
        "servers": whole["servers"],
        "paths": paths,
        "components": needed(paths, whole["components"]),
    }
    TARGET.write_text(json.dumps(subset, indent=None, separators=(",", ":"), sort_keys=True) + "\n", "utf-8")
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")


def bare(node: Any, *, names: bool = False) -> Any:
    """A node without prose. Below `properties` the keys are names of the API and all stay."""
    if isinstance(node, list):
        return [bare(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        key: bare(value, names=key in ("properties", "parameters") and not names)
        for key, value in node.items()
        if names or not (key in _PROSE or key.startswith("x-"))
    }


def needed(paths: Any, components: Any) -> dict[str, dict[str, Any]]:
    """The components that paths refer to, and those that these refer to."""
    found: dict[str, dict[str, Any]] = {}
    waiting = [paths]
    while waiting:
        for reference in references(waiting.pop()):
            _, _, kind, name = reference.split("/")
            if name in found.setdefault(kind, {}):
                continue
            found[kind][name] = bare(components[kind][name])
            waiting.append(found[kind][name])
    found.pop("examples", None)
    return found


def references(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for each in node:
            yield from references(each)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            else:
                yield from references(value)


if __name__ == "__main__":
    main()
