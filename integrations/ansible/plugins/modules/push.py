#!/usr/bin/python
# The work is done by the action plugin of the same name, on the controller: the host needs no Python.

DOCUMENTATION = r"""
module: push
short_description: Put the static binary of plumb on a host, its hash checked
description:
  - Copies one file to the host by the connection that Ansible has, compares its SHA-256 there with that of the file here, and puts it
    in its place in one step. A host that has the file already is left alone.
  - The host needs a POSIX shell and C(sha256sum), and no Python.
options:
  src:
    description: The static binary on the controller, such as C(cargo xtask release) makes.
    type: path
    required: true
  sha256:
    description: What the hash of O(src) must be, 64 hexadecimal digits. Another one fails the task before anything is copied.
    type: str
  dest:
    description: The path on the host. Its directory must exist.
    type: path
    default: /usr/local/bin/plumb
author:
  - The plumb authors
attributes:
  check_mode:
    support: full
    description: Says whether it would be copied.
"""

EXAMPLES = r"""
- name: The program for hosts without a package
  plumb.storage.push:
    src: files/plumb
    sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
  become: true
"""

RETURN = r"""
sha256:
  description: The hash of the program.
  returned: always
  type: str
version:
  description: What C(plumb --version) says on the host.
  returned: when it is there
  type: str
"""
