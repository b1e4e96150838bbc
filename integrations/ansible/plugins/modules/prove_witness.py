#!/usr/bin/python
"""The witness of real power cuts, started and stopped on the host that keeps its power."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: prove_witness
short_description: Run the witness of power cuts on a host
description:
  - Starts or stops C(plumb prove witness), which records what the drive of another machine acknowledged while the power of that
    machine is cut. The host must not lose power with the drive.
  - The witness listens at a unix socket that only its user may open, never at a network port. A writer on another machine reaches it
    through ssh, C(ssh -N -L /run/witness.sock:SOCKET HOST), with C(plumb prove writer --witness unix:/run/witness.sock).
  - It may be stopped and started again at any time, for what it has confirmed is durable.
options:
  state:
    description: Whether it runs.
    type: str
    choices: [started, stopped]
    default: started
  dir:
    description: Where the record is kept. It stays when the witness is stopped.
    type: path
    required: true
  listen:
    description: The unix socket.
    type: path
    required: true
  timeout:
    description: How long the task waits for the witness to listen, or to end, in seconds.
    type: int
    default: 10
extends_documentation_fragment:
  - plumb.storage.common
attributes:
  check_mode:
    support: full
    description: Says whether it would be started or stopped.
"""

EXAMPLES = r"""
- name: A witness on the host that keeps its power
  plumb.storage.prove_witness:
    dir: /var/lib/plumb/witness/rack-7
    listen: /run/plumb-witness-rack-7.sock
  become: true
"""

RETURN = r"""
pid:
  description: The process of the witness; null if none runs.
  returned: always
  type: int
log:
  description: The file that holds what the witness says.
  returned: always
  type: str
"""

import errno
import os
import signal
import socket
import subprocess
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.plumb.storage.plugins.module_utils.plumb import COMMON, Plumb, sentence


def running(words):
    """The process that runs these words; None if there is none."""
    wanted = b"\0".join(word.encode() for word in words) + b"\0"
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/cmdline" % name, "rb") as file:
                # How the program was named in front of its words does not matter.
                if file.read().partition(b"\0")[2] == wanted:
                    return int(name)
        except (IOError, OSError):
            continue  # It has ended meanwhile.
    return None


def listens(path):
    """Whether somebody answers at a socket."""
    client = socket.socket(socket.AF_UNIX)
    try:
        client.connect(path)
        return True
    except (IOError, OSError):
        return False
    finally:
        client.close()


def wait_until(test, timeout):
    """Whether a test holds before so many seconds are over."""
    end = time.time() + timeout
    while not test():
        if time.time() > end:
            return False
        time.sleep(0.05)
    return True


def start(module, words, log):
    """Starts it in a session of its own, so that it outlives the connection of the task."""
    try:
        os.makedirs(module.params["dir"], 0o700)
    except OSError as error:
        if error.errno != errno.EEXIST:
            module.fail_json(msg="cannot make %s: %s" % (module.params["dir"], error))
    with open(log, "ab") as said, open(os.devnull, "rb") as nothing:
        begins = said.tell()
        process = subprocess.Popen(words, stdin=nothing, stdout=said, stderr=said, close_fds=True, start_new_session=True, cwd="/")
    path, timeout = module.params["listen"], module.params["timeout"]
    wait_until(lambda: process.poll() is not None or listens(path), timeout)
    if process.poll() is not None:
        with open(log) as said:
            said.seek(begins)
            module.fail_json(msg="the witness ended: %s" % sentence(process.returncode, said.read()), log=log)
    if not listens(path):
        process.terminate()
        module.fail_json(msg="the witness does not listen at %s after %s s; %s holds what it said" % (path, timeout, log), log=log)
    return process.pid


def stop(module, pid):
    os.kill(pid, signal.SIGTERM)
    if not wait_until(lambda: not os.path.exists("/proc/%d" % pid), module.params["timeout"]):
        module.fail_json(msg="the witness, process %d, does not end; what it has confirmed is durable, so it may be killed" % pid)


def main():
    arguments = dict(
        COMMON,
        state={"type": "str", "choices": ["started", "stopped"], "default": "started"},
        dir={"type": "path", "required": True},
        listen={"type": "path", "required": True},
        timeout={"type": "int", "default": 10},
    )
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    params = module.params
    words = ["prove", "witness", "--dir", params["dir"], "--listen", params["listen"]]
    pid, log = running(words), os.path.join(params["dir"], "witness.log")
    changed = (pid is None) == (params["state"] == "started")
    if changed and not module.check_mode:
        if pid is None:
            pid = start(module, [Plumb(module).path] + words, log)
        else:
            stop(module, pid)
            pid = None
    module.exit_json(changed=changed, pid=pid, log=log)


if __name__ == "__main__":
    main()
