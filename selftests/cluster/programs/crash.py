# SPDX-License-Identifier: MIT
"""One rank has an uncaught exception; the others, which wait for it, must end, too."""
import os

import pyacp as acp

with acp.job():
    if acp.rank() == 1:
        os.environ["no such variable"]
    try:
        acp.sync()
    except acp.Error as e:
        print(f"told: {e.strerror}", flush=True)
