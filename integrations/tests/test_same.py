"""The modules of the collection and the program as a module answer the same to the same parameters, and ask plumb for the same."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import COLLECTION, FAKE

PLUMB = os.environ.get("PLUMB")
PYTHON = "/usr/bin/python3"
HAS_ANSIBLE = subprocess.run([PYTHON, "-c", "import ansible.module_utils.basic"], capture_output=True).returncode == 0

REFUSED = {"reason": "a cluster uses it", "remedy": "leave it to the cluster"}
DISKS = [
    {"name": "sda", "identity": "naa.a", "state": "on"},
    {"name": "sdb", "identity": "naa.b", "state": "off"},
    {"name": "sdc", "identity": "naa.c", "state": "on"},
]
CLAIM = {"by": "Jane", "until": "2027-06-30", "reason": "the battery of hall 'B'"}
A = {"devices": ["sda"]}
OFF = dict(A, state="off")
BACK = ("rollback", {})

# What is asked for one after the other, as (module, parameters); a third value is what else is true of the task: "check" is check mode. Where
# Ansible itself refuses parameters, in words of its own, "names WORD" is a word that both have.
CASES = {
    "one fact as a text": [("facts", {"gather": "policy"})],
    "no facts": [("facts", {"gather": []})],
    "unknown facts": [("facts", {"gather": ["policy", "disks"]}), ("facts", {"gather": "disks,surveys"})],
    "numbers as texts": [("policy", dict(OFF, wave_size=size), "check") for size in ("4", 4, " 4 ", 0, "0", -1)],
    "no number": [("policy", dict(OFF, wave_size=size), "names wave_size") for size in ("four", "", 1.5, [4])],
    "truths": [
        ("policy", dict(state="off", all=yes, save=save, persist=persist), "check")
        for yes, save, persist in [(True, "on", "no"), ("yes", "N", 0), ("T", 1, False), ("True", "off", " f "), (1, 0.0, "1")]
    ],
    "no truth": [("policy", dict(state="off", all=value), "names all") for value in ("perhaps", "", 2, ["yes"])],
    "states that YAML takes for truths": [("policy", dict(A, state=state), "check") for state in (True, False, "True", "False", "on")],
    "no state": [("policy", dict(A, state=state)) for state in ("of", "OFF", "", 1)] + [("policy", A)],
    "lists as texts": [("policy", {"state": "off", "devices": devices}, "check") for devices in ("sda", "sda,sdb", "sda sdb", "sda, sdb", "", [])],
    "no choice": [("policy", {"state": "off"}), ("policy", {"state": "off", "devices": ["sda"], "all": False})],
    "a choice": [("policy", {"state": "off", "where": "state = on"}, "check"), ("policy", {"state": "off", "where": "state = none"})],
    "nulls": [("policy", dict(OFF, where=None, wave_size=None, persist=None, claim=None, claims=None, journals=None, plumb=None), "check")],
    "unknown parameters": [("policy", dict(OFF, persists=True), "names persists"), ("facts", {"gathers": []}, "names gathers")],
    "paths": [("policy", dict(OFF, claims="~/my claims", journals="$HOME/${JOURNALS}/$NOTHING")), ("verify", {"plan": "~/none", "metrics": "~/m"})],
    "apply, drift and rollback": [
        ("policy", OFF, "check"), ("policy", OFF), ("policy", OFF), ("verify", {}), (*BACK, "check"), BACK, (*BACK, "check"), ("verify", {}),
        ("verify", {"drift": "report", "metrics": "~/drift.prom"}), BACK,
    ],
    "persistence": [
        ("policy", dict(OFF, persist="yes"), "check"), ("policy", dict(OFF, persist="yes")), ("policy", dict(OFF, persist=True)),
        (*BACK, "check"), BACK, ("policy", dict(OFF, persist=False)),
    ],
    "what is kept is kept again": [
        ("policy", dict(A, state="on", persist=True)), ("policy", dict(OFF, persist=True)), BACK,
        ("policy", dict(OFF, persist=False)), ("policy", dict(A, state="on")), ("rollback", {}),
    ],
    "refused disks": [("policy", dict(state="off", devices=["sda", "refused"], refused=does)) for does in ("fail", "leave", "let")],
    "a disk that lies": [("policy", {"state": "off", "devices": ["sda", "liar", "sdc"]}), (*BACK, "check"), BACK],
    "plumb is killed": [("policy", {"state": "off", "devices": ["killer", "sda"]}), (*BACK, "check"), BACK],
    "a claim": [
        (*protected, mode)
        for protected in [("policy", dict(A, state="protected", claim=CLAIM, persist=True))]
        for mode in ("check", "", "", "check")
    ] + [("policy", dict(A, state="protected", claim=dict(CLAIM, until=until))) for until in ("2027-06-30", "2028-01-01T12:00:00Z", "soon")],
    "a claim as a text": [("policy", dict(A, state="protected", claim=claim)) for claim in (json.dumps(CLAIM), "by=Jane until=2027-06-30 reason='the battery'")],
    "a claim of nothing": [("policy", dict(OFF, claim=CLAIM)), ("policy", dict(A, state="protected"))],
    "no claim": [
        ("policy", dict(A, state="protected", claim={"by": "Jane", "until": "2027-06-30"}), "names reason"),
        ("policy", dict(A, state="protected", claim=dict(CLAIM, since="now")), "names since"),
        ("policy", dict(A, state="protected", claim="nothing"), "names dict"),
    ],
    "claims where some are refused": [("policy", {"state": "protected", "devices": ["sda", "refused"], "claim": CLAIM})],
    "no journal": [("verify", {}), BACK, (*BACK, "check"), ("rollback", {"journal": "~"}), ("rollback", {"journal": "~/files"})],
    "no program": [(module, dict(OFF if module == "policy" else {}, plumb=program)) for module in ("facts", "policy") for program in ("/none", "none", "./none")],
    "another program": [
        ("policy", dict(OFF, plumb=f"{{home}}/{program}"), mode) for program in ("other", "silent", "broken", "fails", "says") for mode in ("", "check")
    ] + [("facts", {"gather": "policy", "plumb": f"{{home}}/{program}"}) for program in ("other", "silent", "fails", "older")],
    "a program by its name": [("facts", {"gather": "policy", "plumb": "plumb"})],
}

# Programs that are no plumb of this version.
PROGRAMS = {
    "other": "echo '{\"schema\": \"other/1\"}'",
    "silent": "",
    "broken": "echo '{\"schema\"'",
    "fails": "echo trouble >&2; exit 5",
    "says": "printf 'plumb: at work\\nplumb: no way:\\n  sda\\n' >&2; exit 4",
    "older": "case $1 in --version) echo plumb 0.0.1;; *) echo '{\"schema\": \"plumb/policy/0\", \"devices\": []}';; esac",
}


@unittest.skipUnless(PLUMB, "PLUMB names no plumb")
@unittest.skipUnless(HAS_ANSIBLE, "ansible-core is not installed")
class Same(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="plumb-same-"))
        self.addCleanup(shutil.rmtree, self.root)
        (self.root / "ansible_collections/plumb").mkdir(parents=True)
        (self.root / "ansible_collections/plumb/storage").symlink_to(COLLECTION)
        for module in ("facts", "policy", "rollback", "verify"):
            (self.root / f"AnsiballZ_plumb_{module}").symlink_to(os.path.abspath(PLUMB))

    def host(self):
        """A new one where the last was."""
        home = self.root / "host"
        shutil.rmtree(home, ignore_errors=True)
        (home / "files").mkdir(parents=True)
        (home / "files/snapshot.json").write_text("half a docum")
        (home / "plumb").symlink_to(FAKE)
        for name, script in PROGRAMS.items():
            (home / name).write_text(f"#!/bin/sh\n{script}\n")
            (home / name).chmod(0o755)
        more = [dict(name=name, identity=f"naa.{name}", state="on", **does) for name, does in (("liar", {"liar": True}), ("killer", {"kills": True}))]
        refused = {"name": "refused", "identity": "naa.r", "state": "on", "refused": REFUSED}
        (home / "machine.json").write_text(json.dumps({"disks": DISKS + more + [refused]}))
        return home

    def answers(self, asks, case):
        """What one side answers to each task, and what it asked plumb for."""
        home, answers = self.host(), []
        for module, parameters, *more in case:
            own = {"plumb": str(home / "plumb")}
            if module != "facts":
                own["journals"] = str(home / "journals")
            if module == "policy":
                own["claims"] = str(home / "claims.json")
            typed = json.loads(json.dumps(dict(own, **parameters)).replace("{home}", str(home)))
            if typed["plumb"] is None:
                del typed["plumb"], typed["claims"]
                typed["plumb"] = str(home / "plumb")
            typed.update(_ansible_module_name=f"plumb_{module}", _ansible_check_mode="check" in more)
            (home / "tmp").mkdir()
            arguments = home / "tmp/args"
            environment = dict(os.environ, HOME=str(home), JOURNALS="of many", PATH=f"{home}:{os.environ['PATH']}", LC_ALL="C.UTF-8")
            done = asks(module, arguments, typed, environment)
            shutil.rmtree(home / "tmp")
            self.assertTrue(done.stdout, f"{module} {parameters}: {done.stderr}")
            answer = json.loads(done.stdout)
            answer.pop("invocation", None)
            answer.setdefault("changed", False)
            path = home / "calls"
            calls = path.read_text() if path.exists() else ""
            path.unlink(missing_ok=True)
            names = [mode.removeprefix("names ") for mode in more if mode.startswith("names ")]
            if names:
                self.assertIn(names[0], answer["msg"])
                answer = {"failed": answer["failed"], "calls": calls}
            kept = {name: (home / name).read_text() for name in ("machine.json", "kept.json", "claims.json") if (home / name).exists()}
            answers.append(self.without_times({"answer": answer, "calls": calls.splitlines(), "kept": kept}))
        return answers

    @staticmethod
    def without_times(told):
        """Names that are new each time are others on each side."""
        text = json.dumps(told, sort_keys=True)
        text = re.sub(r"\d{19}-[0-9a-f]{8}", "TIME", text)
        return json.loads(re.sub(r"[^ \"]*/tmp/[^ \"]*(plan\.json|claims\.toml)", r"\1", text))

    def of_python(self, module, arguments, typed, environment):
        arguments.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": dict(typed, _ansible_remote_tmp=str(arguments.parent))}))
        environment = dict(environment, PYTHONPATH=str(self.root), PYTHONDONTWRITEBYTECODE="1")
        program = [PYTHON, str(COLLECTION / f"plugins/modules/{module}.py"), str(arguments)]
        return subprocess.run(program, env=environment, capture_output=True, text=True)

    def of_program(self, module, arguments, typed, environment):
        arguments.write_text(json.dumps(typed))
        program = [str(self.root / f"AnsiballZ_plumb_{module}"), str(arguments)]
        return subprocess.run(program, env=environment, capture_output=True, text=True)

    def test_both_answer_the_same(self):
        for name, case in CASES.items():
            both = zip(case, self.answers(self.of_python, case), self.answers(self.of_program, case))
            for number, (task, python, program) in enumerate(both):
                with self.subTest(case=name, number=number, task=task):
                    self.maxDiff = None
                    self.assertEqual(program, python)


if __name__ == "__main__":
    unittest.main()
