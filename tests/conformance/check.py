"""Compares a report of the conformance runner with the floors.

    check.py BINARY FOLDER FLOORS

FOLDER is what `tests/conformance/run` filled. Besides the runner's own figures there is
one of ours: `settled`, the outputs that come out the same when they are read again.
`sanitized` is the share of the sanitized outputs that a reader need not sanitize again.
Ends with 1 if anything is below its floor or was not measured at all.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path


def figures(report):
    """`section/class` -> [passed, total], whatever the sub-class."""
    sections = {
        "expect": report["expect"]["strict"],
        "validity": report["validity"]["own"],
        "gofeed": report["gofeed"]["files"],
        "real": report["real"]["parse"] + report["real"]["fields"],
        "broken": report["broken"],
    }
    found = {}
    for section, cells in sections.items():
        everything = found.setdefault(section, [0, 0])
        for cell in cells:
            # Test cases of a validator are no real feeds.
            if section == "real" and "stress" in (cell["class"] + cell["sub"]):
                continue
            one = found.setdefault(f"{section}/{cell['class']}", [0, 0])
            for sums in (everything, one):
                sums[0] += cell["pass"]
                sums[1] += cell["total"]
    return found


def settled(binary, work):
    """How many outputs are the same when they are normalized once more."""
    again = work / "again"
    again.mkdir(exist_ok=True)
    pairs = []
    with (work / "again.jsonl").open("w", encoding="utf-8") as manifest:
        for line in (work / "manifest.jsonl").open(encoding="utf-8"):
            told = json.loads(line)
            once = Path(told["out"])
            if not once.exists():
                continue
            twice = again / once.name
            twice.unlink(missing_ok=True)
            pairs.append((told["file"], once, twice))
            document = {"file": str(once), "url": told["url"], "out": str(twice)}
            manifest.write(json.dumps(document) + "\n")
    command = [binary, "normalize", "--batch", str(work / "again.jsonl"), "--out", str(again)]
    subprocess.run(command, check=False, capture_output=True)
    same = Counter()
    for source, once, twice in pairs:
        is_same = twice.exists() and once.read_bytes() == twice.read_bytes()
        same[is_same] += 1
        if not is_same:
            print(f"not settled: {source}\n    {once}\n    {twice}")
    return [same[True], len(pairs)]


def main():
    binary, folder, floors = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    found = figures(json.loads((folder / "report.json").read_text(encoding="utf-8")))
    found["settled"] = settled(binary, folder / "work")
    sanitized = json.loads((folder / "sanitized.json").read_text(encoding="utf-8"))
    cells = [c for c in sanitized["expect"]["strict"] if c["class"] == "sanitize-self"]
    found["sanitized"] = [sum(c["pass"] for c in cells), sum(c["total"] for c in cells)]
    below = 0
    for line in floors.read_text(encoding="utf-8").splitlines():
        line = line.partition("#")[0].strip()
        if not line:
            continue
        name, _, floor = line.rpartition(" ")
        name = name.strip()
        passed, total = found.get(name, (0, 0))
        reached = 100 * passed / total if total else 0.0
        is_below = reached < float(floor)
        below += is_below
        verdict = "BELOW" if is_below else "ok"
        print(f"{verdict:5} {name:28} {passed:5}/{total:<5} {reached:6.2f} %, floor {floor}")
    if below:
        print(f"{below} below the floor: see {folder}/failures.jsonl and report.md")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
