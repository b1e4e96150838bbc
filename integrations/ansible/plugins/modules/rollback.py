#!/usr/bin/python
"""Back to the write caches before an apply."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: rollback
short_description: Restore the write caches before an apply
description:
  - Restores every disk that an apply has begun, the last first, from the snapshot in its journal, and reads it back. It works after
    a crash and after a restart too. A second rollback changes nothing.
options:
  journal:
    description:
      - The directory of the journal on the host, which M(plumb.storage.policy) returns. Without one, the newest below O(journals).
    type: path
extends_documentation_fragment:
  - plumb.storage.common
  - plumb.storage.common.journals
attributes:
  check_mode:
    support: full
    description: Compares the disks with the snapshot and changes nothing.
  diff_mode:
    support: full
    description: The state of each disk before and after.
"""

EXAMPLES = r"""
- name: Back to what was before the last apply
  plumb.storage.rollback:
  become: true
"""

RETURN = r"""
report:
  description: What was read back of each disk.
  returned: when it was not check mode
  type: dict
journal:
  description: The journal.
  returned: always
  type: str
"""

import json
import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.plumb.storage.plugins.module_utils.plumb import (
    COMMON,
    DONE,
    FAILED,
    FINDING,
    JOURNALS,
    Plumb,
    REFUSED,
    difference,
    newest_journal,
    report_failure,
    shown,
    states_of,
)


def snapshot_of(module, journal):
    """The snapshot that an apply made before its first change."""
    path = os.path.join(journal, "snapshot.json")
    try:
        with open(path) as file:
            return json.load(file)
    except (IOError, OSError, ValueError) as error:
        module.fail_json(msg="%s is no journal of an apply: %s: %s" % (journal, path, error))


def main():
    module = AnsibleModule(argument_spec=dict(COMMON, journal={"type": "path"}, **JOURNALS), supports_check_mode=True)
    plumb = Plumb(module)
    journal = module.params["journal"] or newest_journal(module)
    changes = snapshot_of(module, journal)["plan"]["changes"]

    def states():
        words = ["policy", "show", "--json"]
        found = states_of(plumb.document(words, "plumb/policy/1", (DONE, FINDING))[1]["devices"])
        return [(shown(change["name"], change["identity"]), found.get(change["identity"], "not there")) for change in changes]

    before = states()
    result = {"journal": journal}
    if module.check_mode:
        after = [(disk, change["from"]) for (disk, state), change in zip(before, changes)]
    else:
        words = ["policy", "rollback", "--json", "--", journal]
        code, report = plumb.document(words, "plumb/policy-apply/1", (DONE, REFUSED, FAILED), result)
        after = states()
        result["report"] = report
    result.update(changed=before != after, diff=difference(before, after))
    if not module.check_mode and (code != DONE or report["ended"] != "complete"):
        plumb.fail(report_failure(report), code, otherwise=result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
