#!/usr/bin/python
"""A workload on a host, measured and judged."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: load
short_description: Run a workload and judge what was measured
description:
  - Runs C(plumb load) on files, disks, simulated drives or NBD exports of a host. Returns the figures of the application and of the
    storage, and the verdicts.
  - A file that plumb did not make, and a disk, are refused, as on the command line.
  - Each host runs by itself. C(plumb fleet load) starts many hosts at one moment and adds their figures.
options:
  targets:
    description: Files, block devices, C(sim:MODEL), C(nbd+unix://...).
    type: list
    elements: str
    required: true
  arguments:
    description:
      - Further words of C(plumb load), each an element of its own, such as C([--write, "100", --sync-every, "1"]). No shell reads
        them.
    type: list
    elements: str
    default: []
  run_directory:
    description: Where the run is recorded on the host. It must be new or empty, or hold a run that O(replace) allows to replace.
    type: path
  replace:
    description: Replace the run that is recorded in O(run_directory).
    type: bool
    default: false
  fail_on:
    description: The severity of a verdict that fails the task.
    type: str
    choices: [warning, danger, never]
    default: danger
extends_documentation_fragment:
  - plumb.storage.common
attributes:
  check_mode:
    support: none
    description: The task is skipped, for a load writes.
"""

EXAMPLES = r"""
- name: Writes that are each followed by an fdatasync
  plumb.storage.load:
    targets: [/srv/data/testfile]
    arguments: [--size, 1G, --write, "100", --sync-every, "1", --duration, 10s, --remove-after]
    run_directory: /var/tmp/plumb-load
    replace: true
  register: load

- name: Show it
  ansible.builtin.debug:
    var: load.headline
"""

RETURN = r"""
level:
  description: The highest severity of a verdict, C(none), C(info), C(warning) or C(danger).
  returned: always
  type: str
headline:
  description: The result in one sentence.
  returned: always
  type: str
total:
  description: The figures of all targets together.
  returned: always
  type: dict
verdicts:
  description: What was found, with evidence and remedy.
  returned: always
  type: list
  elements: dict
run_directory:
  description: Where it is recorded; null if nothing was kept.
  returned: always
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.plumb.storage.plugins.module_utils.plumb import COMMON, DONE, FINDING, Plumb

# From which level on a task fails.
FAILING = {"warning": ("warning", "danger"), "danger": ("danger",), "never": ()}


def main():
    arguments = dict(
        COMMON,
        targets={"type": "list", "elements": "str", "required": True},
        arguments={"type": "list", "elements": "str", "default": []},
        run_directory={"type": "path"},
        replace={"type": "bool", "default": False},
        fail_on={"type": "str", "choices": sorted(FAILING), "default": "danger"},
    )
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    if module.check_mode:
        module.exit_json(changed=False, skipped=True, msg="a load writes: it is not run in check mode")
    params, plumb = module.params, Plumb(module)
    words = ["load", "--json"] + params["arguments"]
    words += ["--out", params["run_directory"]] if params["run_directory"] else ["--no-record"]
    words += ["--replace"] if params["replace"] else []
    code, document = plumb.document(words + ["--"] + params["targets"], "plumb/load/1", (DONE, FINDING))
    result = dict((key, document[key]) for key in ("level", "headline", "total", "verdicts", "run_directory"))
    result["changed"] = True
    if document["level"] in FAILING[params["fail_on"]]:
        plumb.fail(document["headline"], code, otherwise=result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
