# Holds documents against schemas: a line of JSON for each, [schema, document], and a line with the complaints.
import json
import sys

from jsonschema import Draft202012Validator

for line in sys.stdin:
    schema, document = json.loads(line)
    errors = Draft202012Validator(schema).iter_errors(document)
    print(json.dumps([f"{error.json_path}: {error.message}" for error in errors]), flush=True)
