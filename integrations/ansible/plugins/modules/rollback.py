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
  - A state that the apply had set and that is kept after power cycles is kept no longer, so that nothing brings it back. A state that was kept
    before the apply, and that M(plumb.storage.policy) has replaced or taken away, is kept again.
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
forgotten:
  description: Disks whose state was kept after power cycles until now.
  returned: always
  type: list
  elements: str
kept_again:
  description: Disks whose state before is kept again.
  returned: when it was not check mode
  type: list
  elements: str
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
    decoded,
    difference,
    forget_states,
    keep_states,
    kept_states,
    newest_journal,
    report_failure,
    shown,
    states_kept_before,
    states_of,
)


def snapshot_of(module, journal):
    """The snapshot that an apply made before its first change."""
    path = os.path.join(journal, "snapshot.json")
    try:
        with open(path) as file:
            return json.load(file)
    except (IOError, OSError) as error:
        why = error.strerror
    except ValueError:
        why = "it is not JSON"
    module.fail_json(msg="%s is not a journal of an apply: %s: %s" % (journal, path, why))


def begun(journal):
    """The disks on which the apply began a step, by the journal: others are not restored."""
    disks = set()
    with open(os.path.join(journal, "journal.log")) as file:
        for line in file:
            record = decoded(line)
            # Half a line at the end is a record that was not written: what it announces did not begin.
            if record and record.get("record") == "intent":
                disks.add(record["disk"])
    return disks


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
    kept = kept_states(plumb)
    kept_before = states_kept_before(journal)

    def is_of_apply(change):
        return (change["identity"], change["to"]) in kept and kept_before.get(change["identity"]) != change["to"]

    forgotten = [change for change in changes if is_of_apply(change)]
    result = {"journal": journal, "forgotten": [change["name"] for change in forgotten]}
    # First: it would be brought back when the disk changes.
    forget_states(plumb, [change["identity"] for change in forgotten], result)
    if module.check_mode:
        restored = begun(journal)
        pairs = zip(before, changes)
        after = [(disk, change["from"] if change["name"] in restored else state) for (disk, state), change in pairs]
    else:
        words = ["policy", "rollback", "--json", "--", journal]
        code, report = plumb.document(words, "plumb/policy-apply/1", (DONE, REFUSED, FAILED), result)
        after = states()
        result["report"] = report
    result.update(changed=before != after or bool(forgotten), diff=difference(before, after))
    if not module.check_mode and (code != DONE or report["ended"] != "complete"):
        plumb.fail(report_failure(report), code, otherwise=result)
    if not module.check_mode:
        # Only the state that a disk is in can be kept.
        now = dict((change["identity"], state) for change, (disk, state) in zip(changes, after))
        gone = [(change, kept_before.get(change["identity"])) for change in changes if change["identity"] in kept_before]
        gone = [(change, state) for change, state in gone if (change["identity"], state) not in kept]
        again = [change["name"] for change, state in gone if now[change["identity"]] == state]
        for change, state in gone:
            if change["name"] not in again:
                module.warn("%s was kept %s, is %s now, and is not kept any more" % (change["name"], state, now[change["identity"]]))
        result.update(kept_again=again, changed=result["changed"] or bool(again))
        keep_states(plumb, None, again, result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
