#!/usr/bin/env python3
"""Honest programs drawn from a seed: automatic_honest.py SEED setup|run [SPARE]. Each step is durable before it is
acknowledged, and changes no byte in place that was acknowledged, unless one write of one block does. With the file
SPARE some sync calls are made twice, and no others can go; it gets the numbers of these calls."""
import os, random, sys

seed, what = sys.argv[1:3]
chance = random.Random(int(seed))
spare = open(sys.argv[3], "w") if sys.argv[3:] else None
twice, synced = random.Random(int(seed)), 0


def often(call):
    def made(fd):
        global synced
        call(fd)
        synced += 1
        if twice.random() < 0.4:
            call(fd)
            synced += 1
            print(synced - 1, synced, file=spare)
    return made


if spare:
    os.fsync, os.fdatasync = often(os.fsync), often(os.fdatasync)


def sync(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def put(path, data, flags):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o644)
    while data:
        data = data[os.write(fd, data):]
    os.fsync(fd)
    os.close(fd)


def data():
    return bytes(chance.randrange(1, 256) for _ in range(chance.choice([1, 100, 4096, 5000, 9000])))


def save():
    put("tmp", data(), os.O_TRUNC), os.rename("tmp", "doc"), sync(".")


def back_up():
    if not os.path.exists("doc.bak"):
        os.link("doc", "doc.bak"), sync(".")
    save(), os.unlink("doc.bak"), sync(".")


def create(number):
    put(f"d/{number}", data(), os.O_EXCL), sync("d")


def append():
    put("log", data(), os.O_APPEND)


def old():
    # What goes before the next acknowledgement may go at once: with SPARE that is no file which the program made.
    return [name for name in sorted(os.listdir("d")) if name == "a" or not spare][:1]


def remove():
    for name in old():
        os.unlink(f"d/{name}"), sync("d")


def move(number):
    for name in old():
        os.mkdir(f"e{number}"), sync(".")
        # The new name first: without this link(2) neither directory need have it.
        os.link(f"d/{name}", f"e{number}/{name}"), sync(f"e{number}")
        os.unlink(f"d/{name}"), sync("d")


def overwrite():
    fd = os.open("header", os.O_WRONLY)
    os.pwrite(fd, data()[:8], 0), os.fdatasync(fd)


if what == "setup":
    os.mkdir("d")
    for name in ["doc", "log", "header", "d/a"]:
        put(name, b"begin" * 100, 0)
else:
    for number in range(1, 4):
        # What keeps the name of a backup can go.
        backed_up = [] if spare else [back_up]
        step = chance.choice([save, *backed_up, append, remove, overwrite, create, move])
        step(number) if step in (create, move) else step()
        with open(os.environ["PLUMB_ACK"], "w") as ack:
            ack.write(f"{number}\n")
