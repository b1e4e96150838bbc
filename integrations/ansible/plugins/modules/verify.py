#!/usr/bin/python
"""Whether disks still are as a plan made them."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: verify
short_description: Check that disks are still in the planned state
description:
  - Reads every disk of a plan or a journal again, and compares it with what was planned. Nothing is changed.
  - A disk that differs fails the task, unless O(drift=report).
options:
  plan:
    description:
      - A plan file or the directory of a journal on the host. Without one, the newest journal below O(journals).
    type: path
  drift:
    description: Whether a disk that differs fails the task, or is only returned.
    type: str
    choices: [fail, report]
    default: fail
  metrics:
    description:
      - A file on the host that is replaced with C(plumb_policy_drift) of each disk, for the textfile collector of node_exporter, such as
        C(/var/lib/plumb/metrics/drift.prom). Its directory must exist.
    type: path
extends_documentation_fragment:
  - plumb.storage.common
  - plumb.storage.common.journals
attributes:
  check_mode:
    support: full
    description: It reads as always.
"""

EXAMPLES = r"""
- name: Nothing has drifted since the last apply
  plumb.storage.verify:
  become: true
"""

RETURN = r"""
disks:
  description: Every disk of the plan, with C(name), C(name_now), C(identity), C(asked), and C(drift), one line for each difference.
  returned: always
  type: list
  elements: dict
drifted:
  description: Whether any disk differs.
  returned: always
  type: bool
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.plumb.storage.plugins.module_utils.plumb import COMMON, DONE, FINDING, JOURNALS, Plumb, newest_journal, shown


def main():
    arguments = dict(
        COMMON,
        plan={"type": "path"},
        metrics={"type": "path"},
        drift={"type": "str", "choices": ["fail", "report"], "default": "fail"},
        **JOURNALS
    )
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    plumb = Plumb(module)
    plan = module.params["plan"] or newest_journal(module)
    words = ["policy", "verify", "--json"]
    words += ["--prometheus-file", module.params["metrics"]] if module.params["metrics"] else []
    code, document = plumb.document(words + ["--", plan], "plumb/policy-verify/1", (DONE, FINDING))
    disks = document["disks"]
    lines = ["%s: %s" % (shown(disk["name"], disk["identity"]), line) for disk in disks for line in disk["drift"]]
    result = dict(changed=False, disks=disks, drifted=bool(lines), plan=plan)
    if lines and module.params["drift"] == "fail":
        plumb.fail("not as planned: %s" % "; ".join(lines), code, otherwise=result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
