# Options and notes that all modules of the collection share.


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  plumb:
    description:
      - The program on the host, as a path, or as a name that is looked for in C(PATH), C(/usr/local/bin) and C(/usr/sbin).
    type: str
    default: plumb
requirements:
  - plumb on the host; M(plumb.storage.push) puts the static binary there
notes:
  - Drives are asked and changed by root only. Use C(become).
  - A run that ends with exit code 2 (usage), 3 (could not measure), 4 (refused for safety) or 5 (failed) fails the task, and
    C(msg) is the sentence that plumb said.
author:
  - The plumb authors
"""

    JOURNALS = r"""
options:
  journals:
    description:
      - The directory of the journals on the host. Each apply makes one below it, and a rollback reads it.
    type: path
    default: /var/lib/plumb/policy/journals
"""
