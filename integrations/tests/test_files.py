"""Units, rules, the dashboard, manifests and scripts, each by the program that reads it."""

import json
import os
import re
import subprocess
import tempfile
import unittest
import urllib.request
from pathlib import Path

from support import INTEGRATIONS, needs

PLUMB = os.environ.get("PLUMB")
# Metrics that are not plumb's own.
OF_OTHERS = {"node_textfile_mtime_seconds"}


def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, **more)


class Files(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def succeeds(self, *words, **more):
        done = run(*words, **more)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}{done.stderr}")
        return done.stdout

    @needs("systemd-analyze")
    def test_units(self):
        for unit in (INTEGRATIONS / "systemd").iterdir():
            # What is started has to exist; a template needs an instance.
            text = unit.read_text().replace("/usr/bin/plumb", "/bin/true")
            (self.directory / unit.name.replace("@.", "@srv-data.")).write_text(text)
        units = sorted(str(path) for path in self.directory.iterdir())
        plain = self.directory / "plain.service"
        plain.write_text("[Service]\nExecStart=/bin/true\n")
        able = run("systemd-analyze", "verify", "--man=no", plain)
        if able.returncode != 0:
            self.skipTest(f"systemd-analyze cannot verify units here: {able.stderr.strip()}")
        done = run("systemd-analyze", "verify", "--man=no", *units)
        own = [line for line in done.stderr.splitlines() if "plumb" in line]
        self.assertEqual((done.returncode, own), (0, []), done.stderr)

    @needs("promtool")
    def test_rules(self):
        directory = INTEGRATIONS / "prometheus"
        self.succeeds("promtool", "check", "rules", directory / "plumb.rules.yml")
        self.succeeds("promtool", "test", "rules", directory / "plumb.rules.test.yml")

    @needs("promtool")
    def test_the_expressions_of_the_dashboard(self):
        expressions = self.expressions()
        self.assertGreater(len(expressions), 10)
        rules = [
            {"record": f"expression:{number}", "expr": re.sub(r"\$\w+", "x", expression)}
            for number, expression in enumerate(expressions)
        ]
        # JSON is YAML.
        (self.directory / "rules.yml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
        self.succeeds("promtool", "check", "rules", self.directory / "rules.yml")

    @needs("promtool")
    @unittest.skipUnless(PLUMB, "PLUMB names no plumb")
    def test_the_metrics_of_rules_and_dashboard_are_those_that_plumb_writes(self):
        policy = run(PLUMB, "policy", "show", "--prometheus").stdout
        written = self.directory / "policy.prom"
        run(PLUMB, "policy", "watch", "--all", "--looks", "1", "--prometheus-file", written)
        metrics = [policy, written.read_text()]
        if os.geteuid() != 0:
            self.skipTest("only root may verify a plan")
        # A plan of no disk: nothing here is to be changed.
        self.succeeds(PLUMB, "policy", "plan", "off", "--where", "name = nonexistent", "--out", self.directory / "plan")
        self.succeeds(PLUMB, "policy", "verify", self.directory / "plan", "--prometheus-file", written)
        metrics.append(written.read_text())
        for command in (["check", "sim:consumer-nvme-ssd", "--seconds", "1"], ["load", "sim:consumer-nvme-ssd", "--duration", "1s"]):
            recording = self.directory / command[0]
            self.succeeds(PLUMB, *command, "--out", recording, "--quiet")
            metrics.append(self.succeeds(PLUMB, "report", recording, "--format", "prometheus"))
        hosts = ["--hosts", "a,b", "--launcher", "sh -c 'exec sh -c \"$1\"' {host}", "--remote-plumb", PLUMB]
        load = ["sim:consumer-nvme-ssd", "--duration", "1s", "--write", "50", "--no-record", "--format", "prometheus"]
        metrics.append(self.succeeds(PLUMB, "fleet", "load", *hosts, *load))
        metrics.append(self.served())
        for text in metrics:
            self.succeeds("promtool", "check", "metrics", input=text)
        families = set(re.findall(r"^# TYPE (\S+)", "\n".join(metrics), re.MULTILINE))
        suffixes = ("", "_bucket", "_sum", "_count")
        known = OF_OTHERS | {family + suffix for family in families for suffix in suffixes}
        rules = (INTEGRATIONS / "prometheus" / "plumb.rules.yml").read_text()
        expressions = self.expressions() + re.findall(r"^ +expr: (.*)$", rules, re.MULTILINE) + self.variables()
        # A name with a colon is one that a rule has recorded.
        used = {name for text in expressions for name in re.findall(r"(?<![:\w])(?:plumb|node)_\w+(?![:\w])", text)}
        self.assertEqual(used - known, set())
        self.assertGreater(len(used), 8)
        # Which labels the samples have; a metric of disks has none here where there are no disks. Prometheus adds the instance.
        labels = {}
        for name, those in re.findall(r"^(\w+)\{(.*)\} \S+$", "\n".join(metrics), re.MULTILINE):
            labels.setdefault(name, {"instance"}).update(re.findall(r'(\w+)="', those))
        selectors = [pair for text in expressions for pair in re.findall(r"(plumb_\w+)\{([^}]*)\}", text)]
        unknown = {
            (name, label)
            for name, those in selectors
            for label in re.findall(r"(\w+) *[=!]", those)
            if name in labels and label not in labels[name]
        }
        self.assertEqual(unknown, set())
        self.assertGreater(len({name for name, _ in selectors} & set(labels)), 4)

    def served(self):
        """The metrics of plumb observe --serve after a sync, with what a power cut would take."""
        words = ["observe", str(self.directory), "--exposure", "--slow", "1ns", "--serve", "127.0.0.1:0"]
        observing = subprocess.Popen([PLUMB, *words], stderr=subprocess.PIPE, text=True)
        # It is read to its end: a full pipe would hold it up.
        self.addCleanup(observing.communicate)
        self.addCleanup(observing.terminate)
        lines = []
        while not lines or "metrics at" not in lines[-1]:
            lines.append(observing.stderr.readline())
            if not lines[-1]:
                self.skipTest(f"plumb observes nothing here: {lines}")
        url = re.search(r"http://[^;]+", lines[-1])[0]
        with open(self.directory / "synced", "w") as synced:
            synced.write("a")
            synced.flush()
            os.fsync(synced.fileno())
        # Each slow event is told once it is counted.
        while "fsync" not in observing.stderr.readline():
            self.assertIsNone(observing.poll())
        with urllib.request.urlopen(url, timeout=600) as answer:
            return answer.read().decode()

    @needs("kubectl")
    def test_manifests(self):
        rendered = self.succeeds("kubectl", "kustomize", INTEGRATIONS / "kubernetes")
        kinds = re.findall(r"^kind: (\w+)$", rendered, re.MULTILINE)
        self.assertEqual(sorted(kinds), ["DaemonSet", "Namespace", "Service", "StatefulSet"])
        self.assertEqual(rendered.count("image: plumb:0.1.0"), 2)

    @needs("shellcheck")
    def test_scripts(self):
        scripts = [INTEGRATIONS / "slurm/fleet-load.sbatch", INTEGRATIONS / "ansible/plugins/modules/policy_shell.sh"]
        self.succeeds("shellcheck", "--shell=sh", *scripts)

    def expressions(self):
        dashboard = json.loads((INTEGRATIONS / "grafana" / "plumb.json").read_text())
        targets = [target for panel in dashboard["panels"] for target in panel.get("targets", [])]
        identifiers = [panel["id"] for panel in dashboard["panels"]]
        self.assertEqual(len(identifiers), len(set(identifiers)))
        return [target["expr"] for target in targets]

    def variables(self):
        """The metrics that the variables of the dashboard take their values from."""
        dashboard = json.loads((INTEGRATIONS / "grafana" / "plumb.json").read_text())
        return [one["query"]["query"] for one in dashboard["templating"]["list"] if one["type"] == "query"]


if __name__ == "__main__":
    unittest.main()
