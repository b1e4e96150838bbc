"""A callback of ansible that writes one line of JSON for each result into the file that PLUMB_RESULTS names."""

import json
import os

from ansible.parsing.ajson import AnsibleJSONEncoder
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: record
type: stdout
short_description: Results as lines of JSON
description: For the tests of the collection.
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "record"

    def note(self, outcome, result):
        name = result._task.get_name().rpartition(" : ")[2]
        line = {"host": result._host.get_name(), "task": name, "outcome": outcome, "result": result._result}
        with open(os.environ["PLUMB_RESULTS"], "a") as file:
            file.write(json.dumps(line, cls=AnsibleJSONEncoder) + "\n")

    def v2_runner_on_ok(self, result):
        self.note("ok", result)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self.note("failed", result)

    def v2_runner_on_skipped(self, result):
        self.note("skipped", result)

    def v2_runner_on_unreachable(self, result):
        self.note("unreachable", result)
