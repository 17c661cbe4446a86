# SPDX-License-Identifier: MIT
"""One rank has an exception that nobody catches; the others, which wait for it, end, too."""
import os

import pyacp as acp

with acp.job():
    if acp.rank() == 1:
        os.environ["no such variable"]
    try:
        acp.sync()
    except acp.Error as e:
        print(f"told: {e.strerror}", flush=True)
