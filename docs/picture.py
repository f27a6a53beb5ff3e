"""Makes docs/comment.png: a comment as GitHub shows it.

python docs/picture.py COMMENT.md GITHUB-MARKDOWN.css

The style sheet is that of the npm package github-markdown-css; chromium and pngquant must be on PATH. The picture is of
the example support_rag with the broken app of support_rag_worse, under the policy that `oloproof init` writes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import comrak

WIDTH, HEIGHT = 1000, 1184
PAGE = """<!doctype html><meta charset="utf-8"><style>{style}
body {{ margin: 16px; font-family: "Liberation Sans", "Noto Color Emoji", sans-serif; }}
.markdown-body {{ border: 1px solid #d1d9e0; border-radius: 6px; padding: 16px; font-size: 14px; }}
</style><article class="markdown-body">{body}</article>"""


def html(markdown: str) -> str:
    """Markdown as GitHub renders it."""
    extensions = comrak.ExtensionOptions()
    extensions.table = extensions.strikethrough = extensions.autolink = extensions.tasklist = True
    extensions.alerts = True
    options = comrak.RenderOptions()
    options.unsafe_ = True
    return comrak.render_markdown(markdown, extension_options=extensions, render_options=options)


def main(comment: Path, style: Path) -> None:
    target = Path(__file__).with_name("comment.png")
    text = PAGE.format(
        style=style.read_text(encoding="utf-8"), body=html(comment.read_text(encoding="utf-8"))
    )
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "comment.html"
        page.write_text(text, encoding="utf-8")
        flags = [
            "--headless",
            "--no-sandbox",
            "--hide-scrollbars",
            "--disable-gpu",
            f"--user-data-dir={folder}",
        ]
        size = f"--window-size={WIDTH},{HEIGHT}"
        subprocess.run(["chromium", *flags, size, f"--screenshot={target}", page.as_uri()], check=True)
    subprocess.run(["pngquant", "--force", "--speed", "1", "--output", target, "64", target], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
