"""A text editor that saves `doc`: editor.py backup|rename good|bad setup|run|check."""
import os, sys

way, how, what = sys.argv[1:4]
good = how == "good"
old, new = b"old line\n" * 600, b"a new line\n" * 700


def write(name, text):
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(fd, text), os.fsync(fd), os.close(fd)


def sync_directory():
    fd = os.open(".", os.O_RDONLY)
    os.fsync(fd), os.close(fd)


def read(name):
    return open(name, "rb").read() if os.path.exists(name) else b""


if what == "setup":
    write("doc", old)
elif what == "run":
    if way == "backup":
        # As vim with `writebackup` and `backupcopy=no`.
        os.rename("doc", "doc~")
        write("doc", new)
        good and sync_directory()
        os.unlink("doc~")
    else:
        write("doc.new", new)
        os.rename("doc.new", "doc")
    good and sync_directory()
elif os.environ.get("PLUMB_REQUIRED"):
    sys.exit(read("doc") != new)
else:
    sys.exit(2 if new != read("doc") and old not in (read("doc"), read("doc~")) else 0)
