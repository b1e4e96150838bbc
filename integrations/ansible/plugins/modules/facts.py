#!/usr/bin/python
"""What is known of a host's disks and write paths, as facts."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: facts
short_description: Gather the write caches and the write paths of a host
description:
  - Reads the write cache of every disk by drive and kernel, and surveys the write path beneath every file system, layer by layer.
  - Nothing is changed, and findings do not fail the task.
options:
  gather:
    description: What is read.
    type: list
    elements: str
    choices: [policy, survey]
    default: [policy, survey]
extends_documentation_fragment:
  - plumb.storage.common
attributes:
  check_mode:
    support: full
    description: It reads as always.
"""

EXAMPLES = r"""
- name: Read all disks
  plumb.storage.facts:
  become: true

- name: Name disks whose flushes are dropped
  ansible.builtin.debug:
    msg: "{{ item.name }}: {{ item.findings | map(attribute='sentence') | join(' ') }}"
  loop: "{{ ansible_facts.plumb.policy.devices | selectattr('findings') }}"
  loop_control:
    label: "{{ item.name }}"
"""

RETURN = r"""
ansible_facts:
  description: All that was read, below C(plumb).
  returned: always
  type: dict
  contains:
    plumb:
      description: The documents of plumb.
      type: dict
      returned: always
      contains:
        version:
          description: The version of plumb.
          type: str
          returned: always
        policy:
          description: The document of C(plumb policy show --json). C(devices) has one entry for each disk.
          type: dict
          returned: if gathered
        survey:
          description: The document of C(plumb survey --all --json). C(paths) has one entry for each file system and disk.
          type: dict
          returned: if gathered
findings:
  description: The sentences of all findings of severity warning or danger.
  returned: always
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.plumb.storage.plugins.module_utils.plumb import COMMON, DONE, FINDING, Plumb

DOCUMENTS = {
    "policy": (["policy", "show", "--json"], "plumb/policy/1", "devices"),
    "survey": (["survey", "--all", "--json"], "plumb/survey/1", "paths"),
}


def main():
    gather = {"type": "list", "elements": "str", "choices": sorted(DOCUMENTS), "default": ["policy", "survey"]}
    module = AnsibleModule(argument_spec=dict(COMMON, gather=gather), supports_check_mode=True)
    plumb = Plumb(module)
    facts = {"version": plumb.version()}
    findings = []
    for name in module.params["gather"]:
        words, schema, parts = DOCUMENTS[name]
        facts[name] = plumb.document(words, schema, (DONE, FINDING))[1]
        for part in facts[name][parts]:
            serious = [finding["sentence"] for finding in part["findings"] if finding["severity"] != "info"]
            findings += [sentence for sentence in serious if sentence not in findings]
    module.exit_json(changed=False, ansible_facts={"plumb": facts}, findings=findings)


if __name__ == "__main__":
    main()
