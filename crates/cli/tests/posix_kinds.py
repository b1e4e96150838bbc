#!/usr/bin/env python3
"""Known kinds of crash bugs, each wrong and mended: posix_kinds.py KIND bad|good setup|run|check.

A number is a block of 4096 bytes that begins with it and its complement, unless a kind says otherwise."""
import mmap, os, resource, struct, sys

kind, how, what = sys.argv[1:4]
good = how == "good"
number = lambda n: struct.pack("<II", n, n ^ 0xFFFFFFFF).ljust(4096, b"\0")
required = int(os.environ.get("PLUMB_REQUIRED") or 0)


def acknowledge(n):
    with open(os.environ["PLUMB_ACK"], "w") as ack:
        ack.write(f"{n}\n")


def write(path, data, at=0, flags=0):
    fd = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o644)
    os.pwrite(fd, data, at)
    return fd


def sync(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def read(path, at=0):
    """The number at a place; ends the check as corrupt if it is none."""
    try:
        with open(path, "rb") as file:
            file.seek(at)
            n, seal = struct.unpack("<II", file.read(8))
    except (OSError, struct.error) as error:
        corrupt(f"{path}: {error}")
    if seal != n ^ 0xFFFFFFFF:
        corrupt(f"{path}: {n} is sealed with {seal}")
    return n


def corrupt(why):
    print(why)
    sys.exit(2)


def at_least(n):
    sys.exit(1 if n < required else 0)


def rename(step):
    if step == "setup":
        write("doc", number(0))
    elif step == "run":
        for n in (1, 2):
            fd = write("tmp", number(n))
            if good:
                os.fsync(fd)
            os.rename("tmp", "doc")
            sync(".")
            acknowledge(n)
    else:
        at_least(read("doc"))


def create(step):
    if step == "run":
        for n in (1, 2):
            os.fsync(write(f"file{n}", number(n)))
            if good:
                sync(".")
            acknowledge(n)
    elif step == "check":
        for n in range(1, required + 1):
            if not os.path.exists(f"file{n}"):
                sys.exit(1)
            read(f"file{n}")


def append(step):
    if step == "setup":
        os.close(write("log", b""))
    elif step == "run":
        log = os.open("log", os.O_RDWR | os.O_APPEND)
        for n in (1, 2, 3):
            os.write(log, number(n))
            os.fdatasync(log)
            acknowledge(n)
    else:
        whole = os.path.getsize("log") // 4096
        for n in range(1, whole + 1):
            if not good:
                read("log", (n - 1) * 4096)
                continue
            with open("log", "rb") as file:
                file.seek((n - 1) * 4096)
                if struct.unpack("<II", file.read(8)) != (n, n ^ 0xFFFFFFFF):
                    at_least(n - 1)
        at_least(whole)


def two_files(step):
    if step == "setup":
        write("data", number(0)), write("index", number(0))
    elif step == "run":
        for n in (1, 2):
            data = write("data", number(n), n * 4096)
            if good:
                os.fsync(data)
            index = write("index", number(n))
            os.fsync(index)
            os.fsync(data)
            acknowledge(n)
    else:
        n = read("index")
        if read("data", n * 4096) != n:
            corrupt(f"the index names {n}, which is not there")
        at_least(n)


def link(step):
    if step == "setup":
        write("old", number(1))
    elif step == "run":
        os.link("old", "new")
        if good:
            sync(".")
        os.unlink("old")
        sync(".")
        acknowledge(1)
    else:
        if not os.path.exists("old") and not os.path.exists("new"):
            corrupt("it has neither name")
        sys.exit(1 if required and not os.path.exists("new") else 0)


def dsync(step):
    if step == "setup":
        write("data", number(0) * 2)
    elif step == "run":
        durable = os.open("data", os.O_RDWR | os.O_DSYNC)
        other = durable if good else os.open("data", os.O_RDWR)
        for n in (1, 2):
            os.pwrite(other, number(n), 4096)
            os.pwrite(durable, number(n), 0)
            acknowledge(n)
    else:
        at_least(min(read("data"), read("data", 4096)))


def short(step):
    """The second write with O_DSYNC is cut by a limit, so that half of what it was given is durable."""
    if step == "setup":
        write("data", number(0) * 4)
    elif step == "run":
        for n in (1, 2):
            # The second write ends at the limit, where the block that nobody synced follows.
            os.pwrite(os.open("data", os.O_RDWR), number(n), 8192)
            durable = os.open("data", os.O_RDWR | os.O_DSYNC)
            if good:
                os.pwrite(durable, number(n), 8192)
            limit = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limit[1]))
            assert os.pwrite(durable, number(n) * 2, 4096) == 4096
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
            acknowledge(n)
    else:
        at_least(min(read("data", 4096), read("data", 8192)))


def vectors(step):
    if step == "setup":
        write("data", number(0) * 2)
    elif step == "run":
        fd = os.open("data", os.O_RDWR)
        for n in (1, 2):
            os.pwritev(fd, [number(n), number(n)], 0, os.RWF_DSYNC if good else 0)
            acknowledge(n)
    else:
        at_least(min(read("data"), read("data", 4096)))


def moved(step):
    """Writes with O_DSYNC at the position of the descriptor."""
    if step == "setup":
        write("log", number(0))
    elif step == "run":
        log = os.open("log", os.O_RDWR | (os.O_DSYNC if good else 0))
        os.lseek(log, 4096, os.SEEK_SET)
        for n in (1, 2):
            os.writev(log, [number(n)[:100], number(n)[100:]])
            acknowledge(n)
    else:
        for n in range(1, required + 1):
            with open("log", "rb") as log:
                if log.seek(n * 4096) and log.read(4096) != number(n):
                    sys.exit(1)


def mapped(step):
    if step == "setup":
        write("data", number(0))
    elif step == "run":
        memory = mmap.mmap(os.open("data", os.O_RDWR), 4096)
        for n in (1, 2):
            memory[:8] = number(n)[:8]
            if good:
                memory.flush()
            acknowledge(n)
    else:
        at_least(read("data"))


def truncate(step):
    if step == "setup":
        write("doc", number(0))
    elif step == "run":
        for n in (1, 2):
            path = "tmp" if good else "doc"
            os.fsync(write(path, number(n), flags=os.O_TRUNC))
            if good:
                os.rename("tmp", "doc")
                sync(".")
            acknowledge(n)
    else:
        at_least(read("doc"))


def header(step):
    if step == "setup":
        write("file", number(0) * 2)
    elif step == "run":
        for n in (1, 2):
            fd = write("file", number(n), (n + 1) * 4096)
            if good:
                os.fsync(fd)
            os.pwrite(fd, number(n), 0)
            os.fsync(fd)
            acknowledge(n)
    else:
        n = read("file")
        if read("file", (n + 1) * 4096) != n:
            corrupt(f"the header names {n}, which is not there")
        at_least(n)


def directory(step):
    if step == "run":
        os.mkdir("new")
        os.fsync(write("new/data", number(1)))
        if good:
            sync("new")
        os.rename("new", "current")
        sync(".")
        acknowledge(1)
    elif step == "check":
        if os.path.exists("current"):
            read("current/data")
        sys.exit(1 if required and not os.path.exists("current") else 0)


def undo(step):
    record = lambda n, old: struct.pack("<III", n, old, n * 31 + old * 10 + 99).ljust(4096, b"\0")
    if step == "setup":
        write("data", number(0) * 2), write("log", record(0, 0))
    elif step == "run":
        data, log = os.open("data", os.O_RDWR), os.open("log", os.O_RDWR)
        for n in (1, 2):
            if good:
                os.pwrite(log, record(n, n - 1), 0), os.fdatasync(log)
            os.pwrite(data, number(n), 0), os.pwrite(data, number(n), 4096)
            if not good:
                os.pwrite(log, record(n, n - 1), 0), os.fdatasync(log)
            os.fdatasync(data), os.pwrite(log, record(0, 0), 0), os.fdatasync(log)
            acknowledge(n)
    else:
        first, second = read("data"), read("data", 4096)
        with open("log", "rb") as file:
            n, old, seal = struct.unpack("<III", file.read(12))
        if n and seal == n * 31 + old * 10 + 99:
            first = second = old
        if first != second:
            corrupt(f"the first block is of {first}, the second of {second}, and no undo record")
        at_least(first)


def ring(step):
    """Not a bug: the program asks for io_uring, and does without."""
    if step == "run":
        import ctypes
        if ctypes.CDLL(None, use_errno=True).syscall(425, 1, ctypes.create_string_buffer(256)) >= 0:
            sys.exit("io_uring was not refused")
        os.fsync(write("file", number(1))), sync(".")
        acknowledge(1)
    elif step == "check":
        at_least(read("file") if required else 0)


def closed(step):
    """Not a bug: a file that its owner cannot read, so that nobody sees what is written."""
    if step == "run":
        fd = os.open("file", os.O_WRONLY | os.O_CREAT, 0o200)
        os.write(fd, number(1)), os.fsync(fd), sync(".")
        acknowledge(1)


globals()[kind](what)
