"""The program inside a worker process: imports the user's app and runs its stages on request.

Started by path with the user's own interpreter, so it uses the standard library and the contract module only.
One JSON message a line comes in on one pipe, one goes out on another; both are private, and a reply carries the
number of its request.

Its one argument is a JSON object: what `oloproof.worker.process` puts into it.
"""

import importlib.util
import json
import os
import sys


def main(argument: str) -> None:
    given = json.loads(argument)
    _load_contract(given["package"])
    from oloproof.worker.keeper import kept

    keeper = kept(given["lifeline"])
    from oloproof.worker.serving import Setting, serve

    sys.argv = [given["target"]]
    sys.path[0] = given["root"]
    serve(Setting(given), keeper)


def _load_contract(package: str) -> None:
    """Make `import oloproof` find our package whatever the interpreter has installed, and nothing else of ours."""
    spec = importlib.util.spec_from_file_location(
        "oloproof", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["oloproof"] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    main(sys.argv[1])
