"""Puts the static binary on a host by its shell alone."""

import hashlib
import re
import shlex

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """`plumb.storage.push`; the module of this name holds its documentation."""

    TRANSFERS_FILES = True
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        _, options = self.validate_argument_spec(
            {
                "src": {"type": "str", "required": True},
                "sha256": {"type": "str"},
                "dest": {"type": "str", "default": "/usr/local/bin/plumb"},
            }
        )
        source = self._find_needle("files", options["src"])
        digest = hash_of(source)
        expected = options["sha256"]
        if expected is not None and not re.fullmatch("[0-9a-fA-F]{64}", expected):
            raise AnsibleActionFail(f"sha256 is {expected!r}: expected 64 hexadecimal digits")
        if expected is not None and expected.lower() != digest:
            raise AnsibleActionFail(f"{source} has the SHA-256 {digest}, not {expected}: nothing was copied")
        dest = shlex.quote(options["dest"])
        result.update(sha256=digest, changed=self.digest(dest) != digest)
        if result["changed"] and not self._task.check_mode:
            self.put(source, digest, dest)
        if not result["changed"] or not self._task.check_mode:
            result["version"] = self.shell(f"{dest} --version", "run plumb").strip()
        return result

    def put(self, source, digest, dest):
        """Beside its place first, so that there is never half a program."""
        directory = self._make_tmp_path()
        try:
            remote = self._connection._shell.join_path(directory, "plumb")
            self._transfer_file(source, remote)
            self._fixup_perms2([directory, remote])
            arrived = self.digest(shlex.quote(remote))
            if arrived != digest:
                raise AnsibleActionFail(f"the copy has the SHA-256 {arrived}, not {digest}: it was put nowhere")
            new, come = f"{dest}.new", shlex.quote(remote)
            self.shell(f"cp {come} {new} && chmod 0755 {new} && mv -f {new} {dest}", "put plumb in its place")
        finally:
            self._remove_tmp_path(directory)

    def digest(self, quoted):
        """The hash of a file on the host; None if there is none."""
        answer = self._low_level_execute_command(f"test ! -e {quoted} || sha256sum < {quoted}", sudoable=True)
        if answer["rc"] != 0:
            raise AnsibleActionFail(f"cannot read {quoted} on the host: {said(answer)}")
        return (answer["stdout"].split() or [None])[0]

    def shell(self, command, purpose):
        answer = self._low_level_execute_command(command, sudoable=True)
        if answer["rc"] != 0:
            raise AnsibleActionFail(f"cannot {purpose}: {said(answer)}")
        return answer["stdout"]


def said(answer):
    return (answer.get("stderr") or answer.get("stdout") or f"exit code {answer['rc']}").strip()


def hash_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
