"""A collection that is built and installed, hosts that are directories, and plays on them."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
INTEGRATIONS = HERE.parent
REPOSITORY = INTEGRATIONS.parent
COLLECTION = INTEGRATIONS / "ansible"
FAKE = HERE / "fake_plumb.py"


def needs(*programs):
    """Skips a test where one of these programs is missing, and says which."""
    missing = [program for program in programs if shutil.which(program) is None]
    return unittest.skipIf(missing, f"{', '.join(missing)} is not installed")


def said(done):
    return f"{done.args}: {done.returncode}\n{done.stdout}\n{done.stderr}"


class Fleet:
    """Hosts of a test, all on this machine: each is a directory with a `plumb` of its own."""

    installed = None

    def __init__(self):
        self.root = Path(tempfile.mkdtemp(prefix="plumb-ansible-"))
        self.hosts = {}

    def remove(self):
        shutil.rmtree(self.root)

    @classmethod
    def install(cls):
        """Builds the collection and installs it, once for all tests, with the programs of ansible."""
        if cls.installed is None:
            cls.installed = Path(tempfile.mkdtemp(prefix="plumb-collection-"))
            steps = [
                ["build", str(COLLECTION), "--output-path", str(cls.installed)],
                ["install", str(cls.installed / "plumb-storage-0.1.0.tar.gz"), "--offline", "-p", str(cls.installed)],
            ]
            for step in steps:
                done = cls.command(["ansible-galaxy", "collection", *step])
                assert done.returncode == 0, said(done)
        return cls.installed

    @classmethod
    def command(cls, words, **more):
        home = cls.installed
        environment = dict(
            os.environ,
            HOME=str(home),
            LC_ALL="C.UTF-8",
            ANSIBLE_COLLECTIONS_PATH=str(home),
            ANSIBLE_LOCAL_TEMP=str(home / "tmp"),
            ANSIBLE_CALLBACK_PLUGINS=str(HERE / "callback"),
            ANSIBLE_STDOUT_CALLBACK="record",
            ANSIBLE_NOCOLOR="1",
            ANSIBLE_FORKS="50",
            ANSIBLE_DEPRECATION_WARNINGS="0",
            **more,
        )
        return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600)

    def host(self, name, *disks, **variables):
        """Adds a host with a fake plumb and these disks: (name, state) or a dict."""
        directory = self.root / name
        directory.mkdir()
        (directory / "plumb").symlink_to(FAKE)
        machine = [
            disk if isinstance(disk, dict) else {"name": disk[0], "identity": f"naa.{name}-{disk[0]}", "state": disk[1]} for disk in disks
        ]
        (directory / "machine.json").write_text(json.dumps({"disks": machine}))
        self.hosts[name] = dict(
            ansible_connection="local", ansible_python_interpreter="/usr/bin/python3", ansible_remote_tmp=str(directory / "tmp"),
            home=str(directory), **variables,
        )
        return directory

    def states(self, host):
        machine = json.loads((self.root / host / "machine.json").read_text())
        return {disk["name"]: disk["state"] for disk in machine["disks"]}

    def calls(self, host):
        """The words of each call of plumb on a host since the last time that this was asked."""
        path = self.root / host / "calls"
        calls = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        path.unlink(missing_ok=True)
        return calls

    def play(self, what, *options):
        """Runs tasks on all hosts, or plays, or a playbook of the collection. Gives the results by host and task, and how it ended."""
        if not isinstance(what, str):
            plays = what if "hosts" in what[0] else [{"hosts": "all", "gather_facts": False, "tasks": what}]
            path = self.root / "play.json"
            path.write_text(json.dumps(plays))
            what = str(path)
        inventory = self.root / "inventory.json"
        inventory.write_text(json.dumps({"all": {"hosts": self.hosts}}))
        results = self.root / "results"
        results.unlink(missing_ok=True)
        done = self.command(["ansible-playbook", "-i", str(inventory), what, *options], PLUMB_RESULTS=str(results))
        lines = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
        return Results(lines, done)


class Results:
    def __init__(self, lines, done):
        self.done = done
        self.by_task = {(line["host"], line["task"]): line for line in lines}

    def of(self, host, task):
        line = self.by_task.get((host, task))
        assert line is not None, f"{host} has no result of {task}\n{said(self.done)}"
        return line["result"]

    def changed(self):
        return {host for (host, _), line in self.by_task.items() if line["result"].get("changed")}

    def hosts(self):
        return {host for host, _ in self.by_task}

    def failed(self):
        return {key for key, line in self.by_task.items() if line["outcome"] in ("failed", "unreachable")}

    def succeeded(self):
        assert self.done.returncode == 0 and not self.failed(), said(self.done) + json.dumps(
            [line for line in self.by_task.values() if line["outcome"] != "ok"], indent=1
        )
        return self


def task(name, module, **arguments):
    """A task of a play; the plumb of the host's directory, and journals and claims in it."""
    own = {"plumb": "{{ home }}/plumb"}
    if module.startswith("policy"):
        own.update(journals="{{ home }}/journals", claims="{{ home }}/claims.json")
    if module in ("verify", "rollback"):
        own.update(journals="{{ home }}/journals")
    return {"name": name, f"plumb.storage.{module}": dict(own, **arguments)}


def may_fail(task):
    return dict(task, ignore_errors=True)
