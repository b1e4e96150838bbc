#!/usr/bin/python
"""The write caches of a host's disks, brought to a state in one call."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: policy
short_description: Bring the write caches of disks to a state
description:
  - Plans the change of all chosen disks of a host, applies the plan by its hash, and reads every disk back, each with one call
    of plumb. The first disk that is not as it was set stops the host and fails the task.
  - A second run changes nothing. In check mode only the plan is made.
  - Disks are changed in waves, the least critical one first and alone. Every step is written to a journal before it is done, so
    that M(plumb.storage.rollback) restores the state before, also after a crash.
options:
  state:
    description:
      - C(off) has no volatile cache (Windows calls it quick removal), C(on) has one and the kernel sends flushes (better
        performance), C(protected) has one and no flush is sent, because a claim says that the cache survives a power cut.
    type: str
    required: true
    choices: ["off", "on", "protected"]
  devices:
    description: Disks by kernel name, node of C(/dev), or a link to one such as those in C(/dev/disk/by-id).
    type: list
    elements: str
  all:
    description: Every disk that has its own write cache.
    type: bool
  where:
    description:
      - Only disks for which this is known to be true, such as C(transport = sas and role = data). C(plumb policy plan --help)
        lists the properties.
    type: str
  refused:
    description:
      - Whether a disk that must not be changed fails the task before anything is changed, or is left out and returned in
        RV(refused).
    type: str
    choices: [fail, leave]
    default: fail
  save:
    description: Also save the state in the drives that can, so that they start with it after a power cut.
    type: bool
    default: false
  persist:
    description:
      - Keep the state after power cycles, by the drive, or by a udev rule and units. What is kept already is left alone.
      - C(false) has no state of the chosen disks kept any more. Without it, nothing is kept or taken away.
    type: bool
  claim:
    description:
      - For O(state=protected), the word of an administrator that the caches of the chosen disks survive a power cut. Disks whose
        drive or model says so need none.
    type: dict
    suboptions:
      by:
        description: The name of the administrator.
        type: str
        required: true
      until:
        description: The day on which the claim ends, such as C(2027-06-30), or a time in RFC 3339.
        type: str
        required: true
      reason:
        description: Why the cache survives.
        type: str
        required: true
  claims:
    description: The file with the claims of administrators.
    type: path
    default: /etc/plumb/claims.toml
  wave_size:
    description: Disks in a wave, 1 to 1000, after which all of them are read back again.
    type: int
extends_documentation_fragment:
  - plumb.storage.common
  - plumb.storage.common.journals
attributes:
  check_mode:
    support: full
    description: Makes the plan and changes nothing. A claim counts for the plan and is not recorded.
  diff_mode:
    support: full
    description: The state of each disk before and after.
seealso:
  - module: plumb.storage.verify
  - module: plumb.storage.rollback
"""

EXAMPLES = r"""
- name: No volatile cache on the data disks, and so after every start
  plumb.storage.policy:
    state: "off"
    where: transport = sas and role = data
    persist: true
  become: true

- name: No flushes to disks that the shelf protects
  plumb.storage.policy:
    state: protected
    devices: [/dev/disk/by-id/wwn-0x5000c500a1b2c3d4]
    claim:
      by: Jane Doe
      until: "2027-06-30"
      reason: shelf 3 is on the battery of hall B
  become: true
"""

RETURN = r"""
plan:
  description: The plan, as C(plumb policy plan --json) prints it.
  returned: when it was made
  type: dict
report:
  description: What was read back of each disk, as C(plumb policy apply --json) prints it.
  returned: when something was applied
  type: dict
journal:
  description: The directory of the journal on the host, for a rollback.
  returned: when something was applied
  type: str
refused:
  description: Disks that must not be changed, each with C(name), C(reason) and C(remedy).
  returned: when the plan was made
  type: list
  elements: dict
persisted:
  description: Disks whose state is kept from now on.
  returned: when O(persist=true)
  type: list
  elements: str
forgotten:
  description: Disks whose state was kept until now.
  returned: when O(persist=false)
  type: list
  elements: str
claimed:
  description: Disks for which the claim was recorded.
  returned: with O(claim)
  type: list
  elements: str
"""

import datetime
import os
import shutil
import tempfile

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.plumb.storage.plugins.module_utils.plumb import (
    CHOICE,
    CHOICE_RULES,
    COMMON,
    DONE,
    FAILED,
    FINDING,
    JOURNALS,
    Plumb,
    REFUSED,
    STATES,
    chosen,
    difference,
    forget_states,
    journals,
    keep_states,
    kept_states,
    outcome,
    remember_states,
    report_failure,
    shown,
)

CLAIM = {"by": {"type": "str", "required": True}, "until": {"type": "str", "required": True}, "reason": {"type": "str", "required": True}}


class Change(object):
    """One call of the module."""

    def __init__(self, module, directory):
        self.module, self.params, self.plumb = module, module.params, Plumb(module)
        self.directory = directory
        self.claims = self.params["claims"]
        self.result = {"changed": False}

    def run(self):
        if self.params["claim"]:
            self.record_claims()
        plan = self.make_plan()
        applies = plan["changes"] and not self.module.check_mode
        self.kept = kept_states(self.plumb, self.result) if applies or self.params["persist"] is not None else None
        if applies:
            self.apply(plan)
        if self.params["persist"]:
            self.persist(plan)
        elif self.params["persist"] is not None:
            self.forget(plan)
        self.module.exit_json(**self.result)

    def record_claims(self):
        """Records the claim for each disk that has none as good. In check mode into a copy of the file."""
        claim = self.params["claim"]
        if self.params["state"] != "protected":
            self.module.fail_json(msg="`claim` is what the state protected rests on: with state %s it means nothing" % self.params["state"])
        words = ["policy", "show", "--json", "--claims", self.claims] + chosen(self.params)
        devices = self.plumb.document(words, "plumb/policy/1", (DONE, FINDING))[1]["devices"]
        wanting = [view["name"] for view in devices if not view["refusal"] and needs(view["protection"], claim)]
        self.result["claimed"] = wanting
        if not wanting:
            return
        if self.module.check_mode:
            copy = os.path.join(self.directory, "claims.toml")
            if os.path.exists(self.claims):
                shutil.copyfile(self.claims, copy)
            self.claims = copy
        for name in wanting:
            words = ["policy", "claim", "--json", "--claims", self.claims, "--by=" + claim["by"]]
            words += ["--until=" + claim["until"], "--reason=" + claim["reason"], "--", name]
            self.plumb.document(words, "plumb/policy-claim/1", (DONE, FINDING), self.result)
            self.result["changed"] = True

    def make_plan(self):
        out = os.path.join(self.directory, "plan.json")
        words = ["policy", "plan", self.params["state"], "--json", "--out", out, "--claims", self.claims]
        words += ["--save"] if self.params["save"] else []
        words += [f"--wave-size={self.params['wave_size']}"] if self.params["wave_size"] is not None else []
        plan = self.plumb.document(words + chosen(self.params), "plumb/policy-plan/1", (DONE, REFUSED), self.result)[1]
        self.result.update(plan=plan, refused=plan["refused"])
        self.result["diff"] = difference(*before_and_after(plan))
        if plan["refused"] and self.params["refused"] == "fail":
            disks = "; ".join("%(name)s is refused: %(reason)s; %(remedy)s" % disk for disk in plan["refused"])
            self.plumb.fail("no write cache was changed: %s" % disks, REFUSED, otherwise=self.result)
        if not (plan["changes"] or plan["unchanged"] or plan["refused"]):
            self.module.warn("no disk of this host is chosen: nothing was planned")
        self.result["changed"] = self.result["changed"] or bool(plan["changes"])
        return plan

    def apply(self, plan):
        out = os.path.join(self.directory, "plan.json")
        words = ["policy", "apply", out, "--json", "--journal", self.params["journals"], "--claims", self.claims]
        self.result["changed"] = bool(self.result.get("claimed"))
        before = self.journals()

        def otherwise():
            # Without a report nothing was begun, unless plumb was killed: its journal says what there is to restore.
            begun = [name for name in self.journals() if name not in before]
            if not begun:
                return self.result
            journal = os.path.join(self.params["journals"], begun[-1])
            remember_states(journal, self.kept, plan["changes"])
            return dict(self.result, journal=journal, changed=True)

        code, report = self.plumb.document(words, "plumb/policy-apply/1", (DONE, REFUSED, FAILED), otherwise)
        self.result.update(report=report, journal=report["journal"])
        touched = [disk for disk in report["disks"] if disk["result"] not in ("untouched", "refused")]
        self.result["changed"] = bool(touched) or bool(self.result.get("claimed"))
        self.result["diff"] = difference(*before_and_after(plan, report))
        remember_states(report["journal"], self.kept, plan["changes"])
        if code != DONE or report["ended"] != "complete":
            self.plumb.fail(report_failure(report), code, otherwise=self.result)

    def persist(self, plan):
        """Has the state of each disk kept that is not kept already."""
        disks = plan["changes"] + plan["unchanged"]
        state = self.params["state"]
        wanting = [disk["name"] for disk in disks if disk["identity"] and (disk["identity"], state) not in self.kept]
        self.result["persisted"] = wanting
        keep_states(self.plumb, self.claims, wanting, self.result)
        self.result["changed"] = self.result["changed"] or bool(wanting)

    def forget(self, plan):
        """Has no state of the disks kept any more."""
        kept = set(identity for identity, state in self.kept)
        wanting = [disk for disk in plan["changes"] + plan["unchanged"] if disk["identity"] in kept]
        forget_states(self.plumb, [disk["identity"] for disk in wanting], self.result)
        self.result["forgotten"] = [disk["name"] for disk in wanting]
        self.result["changed"] = self.result["changed"] or bool(wanting)

    def journals(self):
        root = self.params["journals"]
        return journals(root) if os.path.isdir(root) else []


def needs(protection, claim):
    """Whether the claim of a disk is to be recorded: it has none, or another one that is not a better."""
    if protection is None or protection["rank"] == "timing-hint":
        return True
    if protection["rank"] != "administrators-word":
        return False
    said = "%s says so: %s" % (claim["by"], claim["reason"])
    return protection["claim"] != said or protection["until"] != moment(claim["until"])


def moment(text):
    """A time; the end of the day where a day is named. What is neither is left to plumb to judge."""
    try:
        return (datetime.datetime.strptime(text, "%Y-%m-%d") + datetime.timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (TypeError, ValueError):
        return text


def before_and_after(plan, report=None):
    """The states of the disks of a plan before, and after: as planned, or as they were read back."""
    results = dict((disk["identity"], disk) for disk in report["disks"]) if report else {}

    def after(change):
        disk = results.get(change["identity"])
        if disk is None or disk["result"] == "verified":
            return change["to"]
        if disk["result"] in ("untouched", "refused"):
            return change["from"]
        return outcome(disk)

    changes = [(shown(change["name"], change["identity"]), change["from"], after(change)) for change in plan["changes"]]
    changes += [(shown(disk["name"], disk["identity"]), disk["state"], disk["state"]) for disk in plan["unchanged"]]
    changes.sort()
    return [change[:2] for change in changes], [(change[0], change[2]) for change in changes]


def main():
    arguments = dict(
        state={"type": "str", "required": True, "choices": list(STATES)},
        refused={"type": "str", "choices": ["fail", "leave"], "default": "fail"},
        save={"type": "bool", "default": False},
        persist={"type": "bool"},
        claim={"type": "dict", "options": CLAIM},
        claims={"type": "path", "default": "/etc/plumb/claims.toml"},
        wave_size={"type": "int"},
    )
    for shared in (COMMON, JOURNALS, CHOICE):
        arguments.update(shared)
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True, **CHOICE_RULES)
    directory = tempfile.mkdtemp(dir=module.tmpdir)
    try:
        Change(module, directory).run()
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
