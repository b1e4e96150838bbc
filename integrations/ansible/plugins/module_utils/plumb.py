"""Runs plumb on the host, and reads its documents. No shell is involved, and nothing is interpreted but the JSON."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import os

# Exit codes of plumb.
DONE, FINDING, USAGE, NOT_MEASURED, REFUSED, FAILED = range(6)

MEANINGS = {
    USAGE: "the command line makes no sense to it",
    NOT_MEASURED: "it could not measure, or was interrupted",
    REFUSED: "it refused for safety",
    FAILED: "it failed",
}

COMMON = {"plumb": {"type": "str", "default": "plumb"}}
JOURNALS = {"journals": {"type": "path", "default": "/var/lib/plumb/policy/journals"}}

# In the journal of an apply: which states of its disks were kept before it.
KEPT_BEFORE = "kept-before.json"

# What stands for nothing else: the states of a write cache.
STATES = ("off", "on", "protected")


class Plumb(object):
    """The program of one host."""

    def __init__(self, module):
        self.module = module
        path = module.params["plumb"]
        if "/" in path:
            found = path if os.path.isfile(path) and os.access(path, os.X_OK) else None
        else:
            found = module.get_bin_path(path, opt_dirs=["/usr/local/bin", "/usr/sbin"])
        if found is None:
            module.fail_json(
                msg="there is no program %s on this host: install the package, push the static binary with plumb.storage.push, "
                "or name its path with `plumb`" % path
            )
        self.path = found

    def document(self, words, schema, expected=(DONE,), otherwise=None):
        """The exit code and the document of a command. A command that ends otherwise, or prints something else, fails the
        task; `otherwise` is what the task returns then, or gives it."""
        code, printed, said = self.module.run_command([self.path] + words)
        document = decoded(printed)
        if code not in expected or (document is None and code != DONE):
            self.fail("plumb %s: %s" % (" ".join(words[:2]), sentence(code, said)), code, document, otherwise)
        found = document.get("schema") if isinstance(document, dict) else None
        if found != schema:
            self.fail(
                "plumb %s printed %s instead of a document %s: %s is another version of plumb, or another program"
                % (" ".join(words[:2]), found or "no document", schema, self.path),
                code,
                document,
                otherwise,
            )
        return code, document

    def version(self):
        """Its version, as it says it itself."""
        code, printed, said = self.module.run_command([self.path, "--version"])
        if code != DONE or not printed.startswith("plumb "):
            self.fail("%s is not a plumb: %s" % (self.path, sentence(code, said)), code)
        return printed.split()[1]

    def fail(self, message, code, document=None, otherwise=None):
        """Ends the task."""
        otherwise = otherwise() if callable(otherwise) else otherwise
        result = dict(otherwise or {}, msg=message, exit_code=code)
        if document is not None:
            result.setdefault("document", document)
        self.module.fail_json(**result)


def decoded(text):
    """The document in what was printed; None if there is none."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def sentence(code, said):
    """What plumb said last, without the progress before it; what the exit code means if it said nothing."""
    said = said.strip()
    lines = said.splitlines()
    starts = [index for index, line in enumerate(lines) if line.startswith("plumb: ")]
    if starts:
        return "\n".join(lines[starts[-1]:])[len("plumb: "):]
    meaning = MEANINGS.get(code, "it ended with exit code %s" % code)
    return "%s (%s)" % (meaning, said) if said else meaning


def chosen(params):
    """The words that choose disks. Names come last, behind `--`, so that none is taken for an option."""
    words = []
    if params["where"] is not None:
        words.append("--where=" + params["where"])
    if params["all"]:
        words.append("--all")
    if params["devices"]:
        words += ["--"] + params["devices"]
    return words


CHOICE = {
    "devices": {"type": "list", "elements": "str"},
    "all": {"type": "bool"},
    "where": {"type": "str"},
}
CHOICE_RULES = {
    "required_one_of": [("devices", "all", "where")],
    "mutually_exclusive": [("devices", "all")],
}


def shown(name, identity):
    """A disk in a sentence or a diff."""
    return "%s (%s)" % (name, identity) if identity else name


def states_of(devices):
    """The states of disks by their identity, out of the document of `policy show`."""
    return dict((view["identity"] or view["name"], view["state"]) for view in devices)


def difference(before, after):
    """A diff of two lists of (disk, state), as `--diff` shows it."""

    def text(states):
        return "".join("%s: %s\n" % (disk, state) for disk, state in states)

    header = "write caches"
    return {"before": text(before), "after": text(after), "before_header": header, "after_header": header}


def outcome(disk):
    """What became of one disk of an apply or a rollback, in words; None if it is as it should be."""
    name, result = shown(disk["name"], disk["identity"]), disk["result"]
    if result == "verified":
        return None
    if result == "mismatch":
        return "%s was read back and is not as it was set: %s" % (name, disk["found"])
    if result == "failed":
        return "%s: %s" % (name, disk["error"])
    if result == "refused":
        return "%s is refused: %s; %s" % (name, disk["reason"], disk["remedy"])
    if result == "interrupted":
        return "%s was begun and interrupted" % name
    return "%s was not begun" % name


def report_failure(report):
    """Why an apply or a rollback is not a success, in words."""
    lines = [line for line in (outcome(disk) for disk in report["disks"]) if line]
    lines += [report["go_on"]] if report.get("go_on") else []
    return "; ".join(lines) or "it ended %s" % report["ended"]


def kept_states(plumb, otherwise=None):
    """Which states of which disks are kept after power cycles: pairs of identity and state."""
    document = plumb.document(["policy", "persist", "--json"], "plumb/policy-persist/1", (DONE, FINDING), otherwise)[1]
    return set((disk["identity"], disk["state"]) for disk in document["kept"])


def states_kept_before(journal):
    """Which states of the disks of an apply were kept before it, by identity; none where the apply did not touch that."""
    try:
        with open(os.path.join(journal, KEPT_BEFORE)) as file:
            return json.load(file)
    except (IOError, OSError, ValueError):
        return {}


def remember_states(journal, kept, changes):
    """Writes beside the snapshot of an apply what was kept of its disks before it, so that a rollback can keep it again."""
    disks = set(change["identity"] for change in changes)
    path = os.path.join(journal, KEPT_BEFORE)
    with open(path + ".new", "w") as file:
        json.dump(dict((identity, state) for identity, state in kept if identity in disks), file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".new", path)


def keep_states(plumb, claims, names, otherwise=None):
    """Has the states that these disks are in kept."""
    if names and not plumb.module.check_mode:
        words = ["policy", "persist", "--json"]
        words += ["--program", plumb.path] if plumb.path.startswith("/") else []
        words += ["--claims", claims] if claims else []
        plumb.document(words + ["--"] + names, "plumb/policy-persist/1", otherwise=otherwise)


def forget_states(plumb, identities, otherwise=None):
    """Has the states of these disks kept no longer; the disks stay as they are."""
    if identities and not plumb.module.check_mode:
        words = ["policy", "persist", "--json", "--remove", "--"]
        plumb.document(words + identities, "plumb/policy-persist/1", otherwise=otherwise)


def journals(root):
    """The journals of applies, the newest last: their names begin with the time. Those of comparisons, which put everything back
    themselves, and of what is set again at every start have other names."""
    return sorted(name for name in os.listdir(root) if name[:1].isdigit() and os.path.isfile(os.path.join(root, name, "snapshot.json")))


def newest_journal(module):
    """The newest journal of the host."""
    root = module.params["journals"]
    try:
        names = journals(root) if os.path.exists(root) else []
    except (IOError, OSError) as error:
        module.fail_json(msg="no journal can be looked for in %s: %s; name another place with `journals`" % (root, error.strerror))
    if not names:
        module.fail_json(msg="there is no journal in %s: nothing was applied here; name another place with `journals`" % root)
    return os.path.join(root, names[-1])
