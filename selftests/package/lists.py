# SPDX-License-Identifier: MIT
"""Compare the contents of Debian's packages with those of the RPMs.

Only the differences in the tables below are allowed.
"""
import os
import re
import subprocess

# Corresponding packages: deb, RPM.
PAIRS = {"acp-dkms": "acp-dkms", "acp-utils": "acp-utils", "libacp-dev": "acp-devel", "libacp1": "libacp1",
         "python3-pyacp": "python3-pyacp"}
# Different paths of a file: in a deb (a regular expression), in an RPM, and the reason.
PLACES = (
    (r"^/usr/lib/x86_64-linux-gnu/", "/usr/lib64/", "Debian: a directory of libraries for each architecture"),
    (r"^/lib/", "/usr/lib/", "Debian 12: units and rules are still in /lib, which is a link to /usr/lib"),
    (r"^/usr/lib/python3/dist-packages/", "/usr/lib/python3/site-packages/", "Debian: one directory for each Python 3"),
    (r"^/usr/share/zsh/vendor-completions/", "/usr/share/zsh/site-functions/", "Debian: the other is the administrator's"),
    (r"^/usr/share/doc/libacp-dev/", "/usr/share/doc/acp-devel/", "the name of the package"),
    (r"^(/usr/share/doc/.*)\.gz$", r"\1", "Debian compresses long documents"),
)
# The same for an RPM.
RPM_PLACES = ((r"^/usr/lib/python3\.\d+/", "/usr/lib/python3/", "RPM: a directory for each Python"),)
# Files that only one of them has.
DEB_ONLY = (
    (r"^/usr/share/doc/[^/]*/(copyright|changelog)$", "an RPM has licence and changelog elsewhere"),
    (r"^/usr/share/(doc-base|lintian|python3)/", "files for Debian's tools"),
)
RPM_ONLY = ((r"^/usr/share/licenses/", "where RPM puts licences; Debian: copyright"),)


def output(*command):
    return subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout


def place(path, places):
    for pattern, there, _ in places:
        path = re.sub(pattern, there, path)
    return path


def without(paths, table):
    return {path for path in paths if not any(re.search(pattern, path) for pattern, _ in table)}


def of_deb(deb):
    listed = output("sh", "-c", 'dpkg-deb --fsys-tarfile "$0" | tar -tf -', deb).splitlines()
    return without({place(line[1:], PLACES) for line in listed if not line.endswith("/")}, DEB_ONLY)


def of_rpm(rpm):
    listed = output("rpm", "-qp", "--nosignature", "--qf", "[%{FILEMODES:perms} %{FILENAMES}\n]", rpm).splitlines()
    paths = {line.split(" ", 1)[1] for line in listed if not line.startswith("d")}
    return without({place(path, RPM_PLACES) for path in paths}, RPM_ONLY)


def differences(debs, rpms):
    """Return lines that describe the differences; debs, rpms: the files."""
    by_name = {os.path.basename(deb).split("_")[0]: deb for deb in debs}
    others = {re.sub(r"-[^-]*-[^-]*$", "", os.path.basename(rpm)): rpm for rpm in rpms}
    if set(by_name) != set(PAIRS) or set(others) != set(PAIRS.values()):
        yield f"packages: {sorted(by_name)} and {sorted(others)}"
        return
    for name, other in PAIRS.items():
        ours, theirs = of_deb(by_name[name]), of_rpm(others[other])
        if not ours or not theirs:
            yield f"{name}: no files"
        yield from (f"only in {name}.deb: {path}" for path in sorted(ours - theirs))
        yield from (f"only in {other}.rpm: {path}" for path in sorted(theirs - ours))
