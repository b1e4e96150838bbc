#!/usr/bin/python3 -IS
"""A plumb with disks that are not there, for tests of the collection: it takes the words of `plumb policy` that the modules use, and
prints documents of the same schemas, which the tests hold against the schemas of the repository.

Its machine is the file `machine.json` beside the name by which it was called: {"disks": [{"name", "identity", "state", ...}]}.
A disk with "liar" says that it was set and is not; one with "kills" is set, and then plumb is killed; one with "refused" must not be changed. Each call is a line of `calls`."""

import hashlib
import json
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(sys.argv[0]))
BOOT = "00000000-0000-4000-8000-000000000001"
NOW = "2026-11-23T16:00:00Z"
FLAGS = ("--json", "--all", "--save", "--explain", "--remove")


def beside(name):
    return os.path.join(HERE, name)


def load(name, otherwise):
    try:
        with open(beside(name)) as file:
            return json.load(file)
    except FileNotFoundError:
        return otherwise


def save(name, document):
    os.makedirs(os.path.dirname(beside(name)), exist_ok=True)
    with open(beside(name) + ".new", "w") as file:
        json.dump(document, file)
    os.replace(beside(name) + ".new", beside(name))


def words_of(typed):
    """Options with their values, and the rest."""
    options, rest = {}, []
    typed = iter(typed)
    for word in typed:
        if word == "--":
            rest += typed
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            options[name] = True if name in FLAGS else value if equals else next(typed)
        else:
            rest.append(word)
    return options, rest


def end(document, code=0):
    print(json.dumps(document, indent=2))
    sys.exit(code)


def refuse(code, sentence):
    print("plumb: " + sentence, file=sys.stderr)
    sys.exit(code)


def find(machine, names):
    by_name = {disk["name"]: disk for disk in machine["disks"]}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        refuse(2, f"{unknown[0]} is not a disk of this machine")
    return [by_name[name] for name in names]


def chosen(machine, options, names):
    disks = find(machine, names) if names else machine["disks"]
    if "--where" not in options:
        return disks
    # The one expression that the tests use.
    state = options["--where"].removeprefix("state = ")
    return [disk for disk in disks if disk["state"] == state]


def device(disk):
    return {
        "wce": disk["state"] != "off", "wce_unknown_because": None, "changeable": True, "default": True, "saved": None,
        "saveable": False, "sct": None, "mechanism": "mode-page",
    }


def kernel(disk):
    view = "write back" if disk["state"] == "on" else "write through"
    return {"write_cache": view, "cache_type": view, "fua": False}


def protection(disk, claims):
    for claim in load(claims, []):
        if claim["identity"] == disk["identity"]:
            said = f"{claim['who']} says so: {claim['reason']}"
            return {"claim": said, "rank": "administrators-word", "until": claim["until"]}
    return None


def show(machine, options, names):
    devices = [
        {
            "name": disk["name"], "identity": disk["identity"], "transport": "sas", "vendor": "ACME", "model": "X1", "serial": disk["name"],
            "size": 1 << 40, "rotational": True, "state": disk["state"], "device": device(disk), "kernel": kernel(disk), "holders": [],
            "port": "host0", "redundancy_groups": [], "protection": protection(disk, options.get("--claims", "claims")), "health": [],
            "findings": [], "changeable_by": "plumb as root", "refusal": disk.get("refused"),
        }
        for disk in chosen(machine, options, names)
    ]
    end({"schema": "plumb/policy/1", "kernel": "6.12.0", "devices": devices, "raid_controllers": []})


def hash_of(plan):
    text = json.dumps({key: plan[key] for key in plan if key != "hash"}, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def plan(machine, options, rest):
    state, names = rest[0], rest[1:]
    if state not in ("off", "on", "protected"):
        refuse(2, f"`{state}` is not a state of a write cache")
    if not 1 <= int(options.get("--wave-size", 1)) <= 1000:
        refuse(2, "expected a number of disks from 1 to 1000")
    if not (names or "--all" in options or "--where" in options):
        refuse(2, "no disk is named: give names, --all, or --where EXPR")
    changes, refused, unchanged = [], [], []
    for disk in chosen(machine, options, names):
        claim = protection(disk, options.get("--claims", "claims"))
        if disk.get("refused"):
            refused.append(dict(disk["refused"], name=disk["name"]))
        elif state == "protected" and claim is None:
            reason = "nothing says that its cache survives a power cut"
            refused.append({"name": disk["name"], "reason": reason, "remedy": "record a claim with `plumb policy claim`"})
        elif disk["state"] == state:
            unchanged.append({"name": disk["name"], "identity": disk["identity"], "state": state})
        else:
            step = {"on": disk["name"], "words": f"set the cache {state}", "bytes": ["55 10"], "waits_for": None, "left_out_if": None}
            changes.append({
                "name": disk["name"], "identity": disk["identity"], "model": "X1", "from": disk["state"], "to": state, "saved": None,
                "wave": len(changes), "canary": not changes, "port": "host0", "redundancy_groups": [], "device": device(disk),
                "kernel": kernel(disk), "holders": [], "shares_cache_with": [], "protection": claim, "steps": [step],
            })
    document = {
        "schema": "plumb/policy-plan/1", "hash": "", "made_at": NOW, "boot_id": BOOT, "kernel": "6.12.0", "asked": state,
        "changes": changes, "refused": refused, "unchanged": unchanged,
    }
    document["hash"] = hash_of(document)
    if "--out" in options:
        with open(options["--out"], "w") as file:
            json.dump(document, file, indent=2)
    end(document, 4 if refused else 0)


def report(journal, disks, ended, code):
    go_on = None if ended == "complete" else f"`plumb policy rollback {journal}` restores what was before"
    end({"schema": "plumb/policy-apply/1", "journal": journal, "disks": disks, "ended": ended, "go_on": go_on}, code)


def apply(machine, options, rest):
    with open(rest[0]) as file:
        document = json.load(file)
    if hash_of(document) != document["hash"]:
        refuse(4, "the plan was altered since it was made")
    # The time is the name, as plumb does it, so that the newest is the last.
    journal = os.path.join(options["--journal"], f"{time.time_ns()}-{document['hash'][7:15]}")
    save(os.path.join(journal, "snapshot.json"), {"plan": document})
    disks, ended, log = [], "complete", []
    for change in document["changes"]:
        disk = find(machine, [change["name"]])[0]
        entry = {"name": change["name"], "identity": change["identity"], "result": "verified"}
        if ended != "complete":
            entry["result"] = "untouched"
        elif disk.get("liar"):
            entry.update(result="mismatch", found=f"the drive says that its cache is on, expected {change['to']}")
            ended = "failed"
        else:
            disk["state"] = change["to"]
        if entry["result"] != "untouched":
            log.append(json.dumps({"n": len(log), "at": NOW, "record": "intent", "phase": "apply", "disk": change["name"], "step": 0, "words": "", "bytes": []}))
        disks.append(entry)
        if disk.get("kills"):
            ended = "killed"
    save("machine.json", machine)
    with open(os.path.join(journal, "journal.log"), "w") as file:
        file.write("".join(line + "\n" for line in log))
    if ended == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    report(journal, disks, ended, 0 if ended == "complete" else 5)


def rollback(machine, options, rest):
    with open(os.path.join(rest[0], "snapshot.json")) as file:
        changes = json.load(file)["plan"]["changes"]
    disks = []
    for change in reversed(changes):
        find(machine, [change["name"]])[0]["state"] = change["from"]
        disks.append({"name": change["name"], "identity": change["identity"], "result": "verified"})
    save("machine.json", machine)
    report(rest[0], disks, "complete", 0)


def verify(machine, options, rest):
    path = os.path.join(rest[0], "snapshot.json")
    with open(path if os.path.exists(path) else rest[0]) as file:
        document = json.load(file)
    document = document.get("plan", document)
    disks = []
    for change in document["changes"]:
        state = find(machine, [change["name"]])[0]["state"]
        drift = [] if state == change["to"] else [f"its state is {state}, expected {change['to']}"]
        disks.append({
            "name": change["name"], "name_now": change["name"], "identity": change["identity"], "asked": document["asked"], "drift": drift,
        })
    drifted = any(disk["drift"] for disk in disks)
    if "--prometheus-file" in options:
        with open(options["--prometheus-file"], "w") as file:
            file.write(f"plumb_policy_drift {len(disks)}\n")
    end({"schema": "plumb/policy-verify/1", "plan": document["hash"], "disks": disks}, 1 if drifted else 0)


def persist(machine, options, rest):
    kept = load("kept.json", [])
    if "--remove" in options:
        kept = [one for one in kept if one["identity"] not in rest]
        save("kept.json", kept)
        rest = []
    for disk in find(machine, rest):
        kept = [one for one in kept if one["identity"] != disk["identity"]]
        kept.append({
            "identity": disk["identity"], "state": disk["state"], "means": "at-every-start", "requested_at": NOW, "boot_id": BOOT,
            "power_cycles": None, "standing": "requested",
        })
        save("kept.json", kept)
    end({"schema": "plumb/policy-persist/1", "kept": kept, "files": [], "then_run": []})


def claim(machine, options, rest):
    file, disk = options["--claims"], find(machine, rest)[0]
    until = options["--until"] if "T" in options["--until"] else "2027-07-01T00:00:00Z"
    new = {"identity": disk["identity"], "who": options["--by"], "until": until, "reason": options["--reason"]}
    save(file, [one for one in load(file, []) if one["identity"] != disk["identity"]] + [new])
    end({"schema": "plumb/policy-claim/1", "file": file, "identity": disk["identity"], "name": disk["name"], "claim": new, "withdrawn": 0})


def main():
    with open(beside("calls"), "a") as calls:
        calls.write(json.dumps(sys.argv[1:]) + "\n")
    if sys.argv[1:] == ["--version"]:
        print("plumb 0.1.0")
        return
    commands = {
        "show": show, "plan": plan, "apply": apply, "rollback": rollback, "verify": verify, "persist": persist, "claim": claim,
    }
    options, rest = words_of(sys.argv[3:])
    commands[sys.argv[2]](load("machine.json", {"disks": []}), options, rest)


main()
