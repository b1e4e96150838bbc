"""The modules that change write caches, on hosts with disks that are not there."""

import json
import os
import subprocess
import sys
import time
import unittest

from support import FAKE, REPOSITORY, Fleet, may_fail, needs, task

REFUSED = {"reason": "it is a logical disk of a RAID controller", "remedy": "ask its own program"}


@needs("ansible-playbook", "jsonschema")
class Policy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        Fleet.install()

    def setUp(self):
        self.fleet = Fleet()
        self.addCleanup(self.fleet.remove)

    def test_each_playbook_passes_the_check_of_its_syntax(self):
        playbooks = sorted((REPOSITORY / "integrations/ansible/playbooks").glob("*.yml"))
        self.assertGreater(len(playbooks), 4)
        for playbook in playbooks:
            done = Fleet.command(["ansible-playbook", "--syntax-check", str(playbook)])
            self.assertEqual(done.returncode, 0, f"{playbook}: {done.stdout} {done.stderr}")

    def test_four_hundred_disks(self):
        hosts = int(os.environ.get("PLUMB_TEST_HOSTS", "10"))
        each = 400 // hosts
        for number in range(hosts):
            self.fleet.host(f"h{number}", *[(f"sd{disk}", "on") for disk in range(each)])
        change = [task("off", "policy", state=False, all=True)]
        times = []

        def played(*options):
            began = time.monotonic()
            results = self.fleet.play(change, *options).succeeded()
            times.append(time.monotonic() - began)
            return results

        planned = played("--check", "--diff")
        self.assertEqual(len(planned.changed()), hosts)
        self.assertIn("sd3 (naa.h7-sd3): off\n", planned.of("h7", "off")["diff"]["after"])
        self.assertIn("sd3 (naa.h7-sd3): on\n", planned.of("h7", "off")["diff"]["before"])
        self.assertEqual(set(self.fleet.states("h7").values()), {"on"}, "check mode has changed a disk")
        self.assertEqual([call[:2] for call in self.fleet.calls("h7")], [["policy", "plan"]])
        applied = played()
        self.assertEqual(len(applied.changed()), hosts)
        self.assertEqual({state for host in self.fleet.hosts for state in self.fleet.states(host).values()}, {"off"})
        self.assertEqual([call[1] for call in self.fleet.calls("h7")], ["plan", "persist", "apply"], "all disks of a host in one call")
        again = played()
        self.assertEqual(again.changed(), set())
        self.assertEqual([call[1] for call in self.fleet.calls("h7")], ["plan"])
        if "PLUMB_TEST_HOSTS" in os.environ:
            told = "400 disks of %d hosts by Ansible: check mode %.1f s, apply %.1f s (bar 60), again %.1f s with changed=0"
            print(told % (hosts, *times), file=sys.stderr)

    def test_the_first_host_that_is_not_as_it_was_set_ends_the_play_and_is_restored(self):
        for number in range(6):
            liar = {"name": "sdb", "identity": f"naa.{number}b", "state": "on", "liar": number == 2}
            self.fleet.host(f"h{number}", ("sda", "on"), liar)
        variables = dict(
            write_cache_hosts="all", write_cache_become=False, write_cache_batches=[1, 2, 3], write_cache_all=True, write_cache_plumb="{{ home }}/plumb",
            write_cache_journals="{{ home }}/journals", write_cache_claims="{{ home }}/claims.json", write_cache_persist=False,
        )
        results = self.fleet.play("plumb.storage.apply", "-e", json.dumps(variables))
        self.assertNotEqual(results.done.returncode, 0)
        self.assertEqual(results.hosts(), {"h0", "h1", "h2"}, "the third batch has begun")
        result = results.of("h2", "Bring the write caches to the state")
        self.assertIn("sdb (naa.2b) was read back and is not as it was set: the drive says that its cache is on", result["msg"])
        self.assertIn("plumb policy rollback", result["msg"])
        self.assertTrue(result["changed"], "sda was changed")
        self.assertIn("The state before was restored.", results.of("h2", "The host has failed all the same")["msg"])
        self.assertEqual(set(self.fleet.states("h2").values()), {"on"})
        self.assertEqual(set(self.fleet.states("h1").values()), {"off"})
        self.assertEqual(set(self.fleet.states("h3").values()), {"on"})
        # The journals of the others bring them back, too; a host without one says so.
        back = self.fleet.play("plumb.storage.rollback", "-e", json.dumps(variables))
        self.assertEqual(back.changed(), {"h0", "h1"})
        self.assertEqual(set(self.fleet.states("h1").values()), {"on"})
        self.assertIn("there is no journal in", back.of("h3", "Restore")["msg"])
        self.assertEqual({host for host, _ in back.failed()}, {"h3", "h4", "h5"})

    def test_a_rollback_restores_and_a_second_one_changes_nothing(self):
        self.fleet.host("h", ("sda", "on"))
        results = self.fleet.play(
            [
                task("off", "policy", state="off", devices=["sda"]),
                task("as planned", "verify"),
                dict(task("would restore", "rollback"), check_mode=True),
                task("still as planned", "verify"),
                task("restored", "rollback"),
                task("again", "rollback"),
                may_fail(task("drift", "verify")),
                task("drift told", "verify", drift="report", metrics="{{ home }}/drift.prom"),
            ],
            "--diff",
        )
        changed = {name: results.of("h", name)["changed"] for name in ("off", "would restore", "restored", "again")}
        self.assertEqual(changed, {"off": True, "would restore": True, "restored": True, "again": False})
        self.assertEqual(results.of("h", "restored")["diff"]["after"], "sda (naa.h-sda): on\n")
        self.assertIn("sda (naa.h-sda): its state is on, expected off", results.of("h", "drift")["msg"])
        self.assertTrue(results.of("h", "drift told")["drifted"])
        self.assertTrue((self.fleet.root / "h" / "drift.prom").exists())
        self.assertEqual({name for _, name in results.failed()}, {"drift"})

    def test_what_is_refused_fails_before_anything_is_changed_or_is_left_out(self):
        refused = {"name": "sdb", "identity": "naa.b", "state": "on", "refused": REFUSED}
        self.fleet.host("h", ("sda", "on"), refused)
        results = self.fleet.play(
            [
                may_fail(task("refused", "policy", state="off", all=True)),
                may_fail(task("by the shell", "policy_shell", state="off", all=True)),
                may_fail(task("no claim", "policy", state="protected", devices=["sda"])),
                may_fail(task("no wave", "policy", state="off", devices=["sda"], wave_size=0)),
                may_fail(task("wrong", "policy", state="off", devices=["sdz"])),
                may_fail(task("nothing named", "policy", state="off")),
                may_fail(task("no plumb", "policy", state="off", all=True, plumb="/nonexistent/plumb")),
                may_fail(task("another program", "policy", state="off", all=True, plumb="/bin/true")),
                may_fail(task("facts of another program", "facts", plumb="/bin/true")),
            ]
        )
        self.assertEqual(self.fleet.states("h")["sda"], "on")
        self.assertEqual(len(results.failed()), 9)
        for name, sentence in {
            "refused": "no write cache was changed: sdb is refused: it is a logical disk of a RAID controller; ask its own program",
            "by the shell": "no write cache was changed: sdb refused: it is a logical disk of a RAID controller; ask its own program",
            "no claim": "sda is refused: nothing says that its cache survives a power cut; record a claim",
            "no wave": "expected a number of disks from 1 to 1000",
            "wrong": "sdz is not a disk of this machine",
            "nothing named": "one of the following is required: devices, all, where",
            "no plumb": "there is no program /nonexistent/plumb on this host: install",
            "another program": "is another version of plumb, or another program",
            "facts of another program": "/bin/true is not a plumb",
        }.items():
            self.assertIn(sentence, results.of("h", name)["msg"])
        left = self.fleet.play([task("left out", "policy", state="off", all=True, refused="leave")]).succeeded()
        self.assertEqual(left.of("h", "left out")["refused"][0]["name"], "sdb")
        self.assertEqual(self.fleet.states("h"), {"sda": "off", "sdb": "on"})

    def test_what_an_apply_has_made_persistent_goes_with_a_rollback_and_when_it_is_not_wanted(self):
        directory = self.fleet.host("h", ("sda", "on"), ("sdb", "on"))
        # A comparison leaves a journal of another name, which sorts last.
        comparison = directory / "journals" / "compare-17-1"
        comparison.mkdir(parents=True)
        (comparison / "snapshot.json").write_text("{}")
        change = dict(state="off", all=True)
        results = self.fleet.play(
            [
                task("kept", "policy", persist=True, **change),
                task("left alone", "policy", **change),
                dict(task("would go", "policy", persist=False, **change), check_mode=True),
                dict(task("would be restored", "rollback"), check_mode=True),
                task("restored", "rollback"),
                task("kept again", "policy", persist=True, **change),
                task("no longer", "policy", persist=False, **change),
                task("again", "policy", persist=False, **change),
            ]
        ).succeeded()
        both = ["sda", "sdb"]
        changed = {name: results.of("h", name)["changed"] for name in ("kept", "left alone", "would go", "restored", "no longer", "again")}
        self.assertEqual(list(changed.values()), [True, False, True, True, True, False], changed)
        for name in ("would go", "would be restored", "restored", "no longer"):
            self.assertEqual(results.of("h", name)["forgotten"], both, name)
        self.assertEqual(results.of("h", "kept again")["persisted"], both, "the rollback has left them kept")
        self.assertEqual(json.loads((directory / "kept.json").read_text()), [])

    def test_what_was_kept_before_an_apply_is_kept_again_after_its_rollback(self):
        directory = self.fleet.host("h", ("sda", "on"), ("sdb", "off"))
        for disk in ("sda", "sdb"):
            subprocess.run([directory / "plumb", "policy", "persist", "--json", "--", disk], check=True, stdout=subprocess.DEVNULL)
        # sdb has drifted from what is kept of it.
        machine = json.loads((directory / "machine.json").read_text())
        machine["disks"][1]["state"] = "on"
        (directory / "machine.json").write_text(json.dumps(machine))
        # What is set at every start has a journal, too, and is not an apply that anybody asked for.
        enforced = directory / "journals" / "enforce-20261123T160000Z-0"
        enforced.mkdir(parents=True)
        (enforced / "snapshot.json").write_text("{}")
        before = {"sda": "on", "sdb": "off"}
        for words, applied, restored in [
            ({}, before, before),
            ({"persist": True}, {"sda": "off", "sdb": "off"}, before),
            # Only the state that a disk is in can be kept.
            ({"persist": False}, {}, {"sda": "on"}),
        ]:
            self.fleet.play([task("off", "policy", state="off", all=True, **words)]).succeeded()
            self.assertEqual(self.kept(directory), applied, words)
            back = self.fleet.play([task("back", "rollback")]).succeeded().of("h", "back")
            self.assertEqual(self.kept(directory), restored, words)
            self.assertEqual(self.fleet.states("h"), {"sda": "on", "sdb": "on"})
            self.assertEqual(back["kept_again"], ["sda"] if words else [])
        self.assertIn("sdb was kept off", " ".join(back["warnings"]))

    def kept(self, directory):
        return {one["identity"][-3:]: one["state"] for one in json.loads((directory / "kept.json").read_text())}

    def test_a_plumb_that_is_killed_leaves_a_journal_and_the_role_restores_it(self):
        killed = {"name": "sda", "identity": "naa.a", "state": "on", "kills": True}
        self.fleet.host("h", killed, ("sdb", "on"))
        variables = dict(
            write_cache_hosts="all", write_cache_become=False, write_cache_all=True, write_cache_plumb="{{ home }}/plumb",
            write_cache_journals="{{ home }}/journals", write_cache_claims="{{ home }}/claims.json", write_cache_rollback=False,
        )
        results = self.fleet.play("plumb.storage.apply", "-e", json.dumps(variables))
        self.assertIn("journals", results.of("h", "Bring the write caches to the state")["journal"])
        self.assertEqual(self.fleet.states("h"), {"sda": "off", "sdb": "on"})
        # Check mode promises what was begun, and no more.
        would = self.fleet.play([task("would", "rollback")], "--check", "--diff").succeeded().of("h", "would")["diff"]
        self.assertEqual((would["before"], would["after"]), ("sda (naa.a): off\nsdb (naa.h-sdb): on\n", "sda (naa.a): on\nsdb (naa.h-sdb): on\n"))
        self.fleet.play([task("back", "rollback")]).succeeded()
        variables.pop("write_cache_rollback")
        results = self.fleet.play("plumb.storage.apply", "-e", json.dumps(variables))
        self.assertIn("The state before was restored.", results.of("h", "The host has failed all the same")["msg"])
        self.assertEqual(set(self.fleet.states("h").values()), {"on"})

    def test_claims_and_persistence_are_recorded_once_and_not_in_check_mode(self):
        self.fleet.host("h", ("sda", "on"))
        claim = {"by": "Jane \"J\" Doe", "until": "2027-06-30", "reason": "the battery of hall 'B'"}
        protected = dict(state="protected", devices=["sda"], claim=claim, persist=True)
        results = self.fleet.play(
            [
                dict(task("check", "policy", **protected), check_mode=True),
                {"name": "claims", "stat": {"path": "{{ home }}/claims.json"}},
                task("set", "policy", **protected),
                task("again", "policy", **protected),
                may_fail(task("no use", "policy", state="off", devices=["sda"], claim=claim)),
            ]
        )
        self.assertTrue(results.of("h", "check")["changed"])
        self.assertFalse(results.of("h", "claims")["stat"]["exists"], "check mode has recorded a claim")
        self.assertEqual(results.of("h", "set")["claimed"], ["sda"])
        self.assertEqual(results.of("h", "set")["persisted"], ["sda"])
        again = results.of("h", "again")
        self.assertEqual((again["changed"], again["claimed"], again["persisted"]), (False, [], []))
        self.assertIn("with state off it means nothing", results.of("h", "no use")["msg"])
        self.assertEqual(self.fleet.states("h"), {"sda": "protected"})

    def test_a_host_without_python_is_pushed_the_program_and_changed_by_its_shell(self):
        directory = self.fleet.host("h", ("sda", "on"), ("sdb", "off"), ("sdc", "on"))
        (directory / "plumb").unlink()
        self.fleet.hosts["h"]["ansible_python_interpreter"] = "/nonexistent/python3"
        push = {"src": str(FAKE), "dest": "{{ home }}/plumb"}
        change = dict(where="state = on", state="off", persist=True)
        results = self.fleet.play(
            [
                {"name": "would push", "plumb.storage.push": push, "check_mode": True},
                may_fail({"name": "another hash", "plumb.storage.push": dict(push, sha256="0" * 64)}),
                {"name": "push", "plumb.storage.push": push},
                {"name": "push again", "plumb.storage.push": push},
                dict(task("check", "policy_shell", **change), check_mode=True),
                task("off", "policy_shell", **change),
                task("again", "policy_shell", state=False, devices="sda sdb sdc", persist=True),
                task("still", "policy_shell", state="off", all=True, persist=True),
                may_fail(task("unknown", "policy_shell", state="off", all=True, persists=True)),
                may_fail(task("wrong", "policy_shell", state="off", devices="'$(touch {{ home }}/x)' \"sda")),
            ]
        )
        changed = {name: line["result"].get("changed") for (_, name), line in results.by_task.items()}
        expected = {"would push": True, "push": True, "push again": False, "check": True, "off": True, "again": True, "still": False}
        self.assertEqual({name: changed[name] for name in expected}, expected, results.by_task)
        self.assertEqual({name for _, name in results.failed()}, {"another hash", "unknown", "wrong"})
        self.assertIn("no such parameter: persists.", results.of("h", "unknown")["msg"])
        self.assertIn("nothing was copied", results.of("h", "another hash")["msg"])
        self.assertEqual(results.of("h", "push")["version"], "plumb 0.1.0")
        self.assertEqual(results.of("h", "off")["plan"]["asked"], "off")
        self.assertEqual(results.of("h", "off")["report"]["ended"], "complete")
        self.assertEqual(set(self.fleet.states("h").values()), {"off"})
        self.assertIn("is not a disk of this machine", results.of("h", "wrong")["msg"])
        self.assertFalse((directory / "x").exists(), "a name was read by the shell")

    def test_the_documents_of_the_fake_are_as_the_schemas_say(self):
        directory = self.fleet.host("h", ("sda", "on"), ("sdb", "off"), {"name": "sdc", "identity": "naa.c", "state": "on", "liar": True})
        plan, journals = str(directory / "plan"), str(directory / "journals")
        commands = [
            ("policy", ["show", "--json"], 0),
            ("policy-plan", ["plan", "off", "--all", "--json", "--out", plan], 0),
            ("policy-apply", ["apply", plan, "--json", "--journal", journals], 5),
            ("policy-verify", ["verify", "--json", "--", plan], 1),
            ("policy-persist", ["persist", "--json", "--", "sda"], 0),
            ("policy-claim", ["claim", "--json", "--claims", str(directory / "c"), "--by=J", "--until=2027-06-30", "--reason=r", "--", "sda"], 0),
        ]
        for name, words, code in commands:
            done = subprocess.run([directory / "plumb", "policy", *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, code, done.stderr)
            (directory / "document").write_text(done.stdout)
            schema = REPOSITORY / "crates/report/schemas" / f"{name}.schema.json"
            held = subprocess.run(["jsonschema", "-i", directory / "document", schema], capture_output=True, text=True)
            self.assertEqual(held.returncode, 0, held.stdout + held.stderr)


if __name__ == "__main__":
    unittest.main()
