"""What the Python clients share: one line of JSON for each case, for the test to read."""
import json
import os
import sys
import time

BASE, NAME = os.environ["EMMER_BASE"], os.environ["EMMER_CLIENT"]


def key(kind):
    """The key whose first part says what becomes of the call."""
    return f"{kind}-{NAME}"


def run(cases):
    for name, case in cases.items():
        try:
            line = case()
        except Exception as e:  # the test says which are right
            line = {"error": type(e).__name__, "status": status(e), "says": str(e)[:400]}
        json.dump({"case": name, **line}, sys.stdout)
        print(flush=True)


def twice(ask):
    ask()
    return ask()


def spend(ask):
    """Spends a budget, and asks on until that is booked, some milliseconds after the answer."""
    ask("Say hello and spend.")
    for _ in range(100):
        time.sleep(0.05)
        ask("Say hello.")
    return {"text": "never refused"}


def status(e):
    for field in ("status_code", "code"):
        value = getattr(e, field, None)
        if isinstance(value, int):
            return value
    return 0
