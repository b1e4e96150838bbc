#!/usr/bin/env python3
"""Honest programs drawn from a seed: automatic_honest.py SEED setup|run. Each step is durable before it is
acknowledged, and changes no byte in place that was acknowledged, unless one write of one block does."""
import os, random, sys

seed, what = sys.argv[1:3]
chance = random.Random(int(seed))


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


def remove():
    for name in sorted(os.listdir("d"))[:1]:
        os.unlink(f"d/{name}"), sync("d")


def move(number):
    for name in sorted(os.listdir("d"))[:1]:
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
        step = chance.choice([save, back_up, append, remove, overwrite, create, move])
        step(number) if step in (create, move) else step()
        with open(os.environ["PLUMB_ACK"], "w") as ack:
            ack.write(f"{number}\n")
