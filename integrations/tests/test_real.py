"""The modules with the real plumb, which PLUMB names: on this machine's own disks nothing is changed."""

import os
import re
import unittest

from support import Fleet, may_fail, needs, task

MODULES = ["facts", "load", "policy", "policy_shell", "prove_witness", "push", "rollback", "verify"]


@needs("ansible-playbook")
class Real(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        Fleet.install()

    def setUp(self):
        self.fleet = Fleet()
        self.addCleanup(self.fleet.remove)

    def test_every_module_and_the_role_are_documented(self):
        names = [f"plumb.storage.{module}" for module in MODULES]
        done = Fleet.command(["ansible-doc", "--type", "module", *names])
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in names:
            self.assertRegex(done.stdout, rf"(?im)^> (module )?{re.escape(name)} ")
        self.assertEqual(done.stdout.count("EXAMPLES:"), len(names))
        self.assertNotIn("[WARNING]", done.stderr)
        role = Fleet.command(["ansible-doc", "--type", "role", "plumb.storage.write_cache"])
        self.assertIn("write_cache_state", role.stdout, role.stderr)

    @unittest.skipUnless(os.environ.get("PLUMB"), "PLUMB names no plumb")
    def test_facts_a_load_and_a_witness(self):
        directory = self.fleet.host("h")
        (directory / "plumb").unlink()
        (directory / "plumb").symlink_to(os.environ["PLUMB"])
        load = dict(targets=["sim:consumer-nvme-ssd"], arguments=["--write", "100", "--sync-every", "1", "--duration", "1s"])
        dropping = ["sim:ata-40gb?behaviour.driver_drops_flush=true"]
        witness = dict(dir="{{ home }}/wit ness", listen="{{ home }}/socket")
        results = self.fleet.play(
            [
                task("facts", "facts"),
                task("load", "load", run_directory="{{ home }}/run", **load),
                may_fail(task("dropped", "load", **dict(load, targets=dropping, fail_on="warning"))),
                may_fail(task("wrong", "load", **dict(load, arguments=["--writ", "100"]))),
                task("would start", "prove_witness", **witness) | {"check_mode": True},
                task("start", "prove_witness", **witness),
                task("runs", "prove_witness", **witness),
                task("stop", "prove_witness", state="stopped", **witness),
                task("start over", "prove_witness", **witness),
                task("stop again", "prove_witness", state="stopped", **witness),
                task("stopped", "prove_witness", state="stopped", **witness),
                may_fail(task("no place", "prove_witness", **dict(witness, listen="/nonexistent/socket"))),
                # What no disk is: nothing is planned for this machine's own.
                dict(task("no disk", "policy", state="off", where="name = nonexistent"), check_mode=True),
                may_fail(dict(task("no property", "policy", state="off", where="colour = red"), check_mode=True)),
            ]
        )
        self.assertEqual({name for _, name in results.failed()}, {"dropped", "wrong", "no place", "no property"}, results.by_task)
        facts = results.of("h", "facts")["ansible_facts"]["plumb"]
        self.assertEqual(facts["policy"]["schema"], "plumb/policy/1")
        self.assertTrue(any(layer["kind"] == "application" for layer in facts["survey"]["paths"][0]["layers"]))
        self.assertGreater(results.of("h", "load")["total"]["sync"]["ios"], 0)
        self.assertTrue((directory / "run" / "report.html").exists())
        self.assertIn("--writ", results.of("h", "wrong")["msg"])
        names = ["would start", "start", "runs", "stop", "start over", "stop again", "stopped"]
        changed = [results.of("h", name)["changed"] for name in names]
        self.assertEqual(changed, [True, True, False, True, True, True, False])
        self.assertEqual(results.of("h", "start")["pid"], results.of("h", "runs")["pid"])
        self.assertIn("cannot listen at /nonexistent/socket", results.of("h", "no place")["msg"])
        self.assertFalse(results.of("h", "no disk")["changed"])
        self.assertIn("not a property of a disk", results.of("h", "no property")["msg"])


if __name__ == "__main__":
    unittest.main()
