"""A judge that needs no key: `python stand_in.py COMMAND ...` answers on this machine while the command runs.

It speaks OpenAI's format and judges by counting words, which is enough to show how judges work, and no more.
"""

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ADDRESS = ("127.0.0.1", 8787)
FENCED = re.compile(r"<(input|passage|answer)-([0-9a-f]+)([^\n>]*)>\n(.*?)\n</\1-\2>", re.DOTALL)


def words(text):
    return set(re.findall(r"[a-z0-9]+", text.lower()))


def sentences(text):
    return [each for each in re.split(r"(?<=[.!?])\s+", text.strip()) if each]


def judge(prompt, verdicts):
    """The answer to a judge's prompt: the verdict with a rationale and quotes."""
    parts = FENCED.findall(prompt)
    answer = next(text for kind, _, _, text in parts if kind == "answer")
    passages = [
        (int(re.search(r'number="(\d+)"', names)[1]), text)
        for kind, _, names, text in parts
        if kind == "passage"
    ]
    if "pass" in verdicts:
        short = len(sentences(answer)) == 1
        return {
            "verdict": "pass" if short else "fail",
            "rationale": "One sentence." if short else "It says more than was asked.",
            "quotes": [],
        }
    good, bad = ("grounded", "not_grounded") if "grounded" in verdicts else ("supported", "not_supported")
    quotes = []
    for claim in sentences(answer):
        said = [(number, each) for number, text in passages for each in sentences(text)]
        number, best = max(said, key=lambda found: len(words(claim) & words(found[1])))
        if len(words(claim) & words(best)) < 0.6 * len(words(claim)):
            return {"verdict": bad, "rationale": f"No passage says: {claim}", "quotes": []}
        quotes.append({"passage": number, "text": best})
    return {"verdict": good, "rationale": "Each sentence stands in a passage.", "quotes": quotes}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body leave together

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = asked["messages"][-1]["content"]
        schema = asked["response_format"]["json_schema"]["schema"]
        text = json.dumps(judge(prompt, schema["properties"]["verdict"]["enum"]))
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(text) // 4}
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        body = json.dumps({"choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *given):
        pass


def main():
    if len(sys.argv) < 2:
        print(
            "usage: python stand_in.py COMMAND ..., for example: python stand_in.py oloproof run",
            file=sys.stderr,
        )
        return 2
    server = ThreadingHTTPServer(ADDRESS, Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # The stand-in asks for no key, but a judge without one is not asked.
    environment = {"OPENAI_API_KEY": "none", **os.environ}
    return subprocess.run(sys.argv[1:], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
