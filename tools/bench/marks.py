# SPDX-License-Identifier: MIT
"""Parts of documents that scripts generate."""
import re


def between(text, name, inner):
    """Return a document with the text between two marks replaced."""
    begin, end = f"<!-- bench: {name} -->", f"<!-- bench: end {name} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.S)
    if not pattern.search(text):
        raise ValueError(f"no '{begin}' in the document")
    return pattern.sub(lambda _: f"{begin}\n{inner}\n{end}", text)
