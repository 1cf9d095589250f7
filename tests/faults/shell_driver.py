"""Runs command lines of `widemargin`, each in a forked process of its own with streams as asked for.

Each line of standard input is a JSON list of cases, {"words": [...], "stdin": ..., "stdout": ..., "stderr": ...}; each
line of standard output is what came of them, {"status", "signal", "out", "err"}. Words are Latin-1, so that any byte
may be in a file name. A stream is "capture" (of stdin: empty), "closed", "full" (/dev/full), or of stdin a text.
Forking spares the start of Python, and what is loaded in the first process is there in all. The arguments are command
lines that the first process runs itself.
"""

import json
import os
import resource
import signal
import sys
import tempfile
import time

import widemargin.cli.main  # noqa: F401 (loaded in the first process)
from widemargin.__main__ import main

MEMORY = 8 << 30
SECONDS = 60


def run(case):
    """Return what came of a case."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            become(case, out.fileno(), err.fileno())
        status = wait(child)
        out.seek(0)
        err.seek(0)
        texts = {"out": out.read().decode("latin-1"), "err": err.read().decode("latin-1")}
    code = os.waitstatus_to_exitcode(status)
    return {"status": max(code, 0), "signal": max(-code, 0), **texts}


def wait(child):
    """Return the status with which a child ended; one that takes too long is killed."""
    limit = time.monotonic() + SECONDS
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        if time.monotonic() > limit:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.002)


def become(case, out, err):
    """Run the command in this process, and leave."""
    status = 70
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        given = case.get("stdin", "capture")
        if given not in ("capture", "closed"):
            file = tempfile.TemporaryFile()  # noqa: SIM115 (the process ends with it)
            file.write(given.encode("latin-1"))
            file.seek(0)
            os.dup2(file.fileno(), 0)
        elif given == "capture":
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, name, target in ((1, "stdout", out), (2, "stderr", err)):
            way = case.get(name, "capture")
            os.dup2(os.open("/dev/full", os.O_WRONLY) if way == "full" else target, number)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", errors="backslashreplace")  # noqa: SIM115
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            if case.get(name) == "closed":
                os.close(number)
                setattr(sys, name, None)  # as Python starts with
        status = main([os.fsdecode(word.encode("latin-1")) for word in case["words"]])
        sys.stdout.flush()  # as the interpreter does when it ends
    except BaseException:
        import traceback

        os.write(err, traceback.format_exc().encode())
    finally:
        os._exit(status)


if __name__ == "__main__":
    for line in sys.argv[1:]:  # what is compiled here, the others need not compile
        main(line.split())
    for line in sys.stdin:
        print(json.dumps([run(case) for case in json.loads(line)]), flush=True)
