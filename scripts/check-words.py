#!/usr/bin/env python3
"""Finds retired words (docs/dev/glossary.md). Prints each occurrence; `--count` prints how often each word occurs.

scripts/retired-words.allow lists exceptions (the name of a Unix account, a stored key): a path and a regular expression per line.
"""

import collections
import re
import subprocess
import sys

WORDS = {
    "somebody": r"\bsomebody\b|somebody_|_somebody",
    "nobody": r"\bnobody\b|nobody_|_nobody",
    "whoever": r"\bwhoever\b|whoever_|_whoever",
    "ancestor": r"ancestor",
    "how manieth": r"how[- ]manieth",
    "deal": r"\b(?:re)?deal(?:t|s|ing|er)?\b|\bdealt_|_dealt\b",
    "heed": r"\bheed(?:s|ed)?\b|\bheed_",
    "bury": r"\bbur(?:y|ied|ies)\b",
    "mourn": r"\bmourn\w*",
    "bereft": r"\bbereft\b",
    "disown": r"\bdisown\w*",
    "make up for": r"\bma(?:k|d)e(?:s)? up for\b|made_up_for",
    "keep house": r"\bkeep house\b",
    "went well": r"\bwent well\b|\bwent_well\b",
    "errand": r"\berrands?\b",
    "shelf": r"\bshel(?:f|ves|ved)\b",
}
FILES = ["*.rs", "*.md", "*.ts", "*.tsx", "*.py", "*.sh", "*.toml", "*.sql", "*.java", "*.html", "Makefile"]
OWN = {"scripts/check-words.py", "scripts/retired-words.allow", "docs/dev/glossary.md", "docs/dev/renames.md"}


def allowed():
    rules = []
    with open("scripts/retired-words.allow", encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                path, pattern = line.rstrip("\n").split(" ", 1)
                rules.append((path, re.compile(pattern)))
    return rules


def main():
    names = subprocess.run(["git", "ls-files", *FILES], check=True, capture_output=True, text=True).stdout.split("\n")
    rules = allowed()
    words = {word: re.compile(pattern, re.IGNORECASE) for word, pattern in WORDS.items()}
    counts, found = collections.Counter(), 0
    for name in filter(None, names):
        if name in OWN:
            continue
        with open(name, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                for word, pattern in words.items():
                    hits = len(pattern.findall(line))
                    if not hits or any(name == path and rule.search(line) for path, rule in rules):
                        continue
                    found += hits
                    counts[(word, "/".join(name.split("/")[:4]))] += hits
                    if "--count" not in sys.argv:
                        print(f"{name}:{number}: {word!r} is retired (docs/dev/glossary.md): {line.strip()[:120]}")
    if "--count" in sys.argv:
        total = collections.Counter()
        for (word, _), hits in counts.items():
            total[word] += hits
        for word, hits in total.most_common():
            print(f"{hits:5} {word}")
        print(f"{found:5} in all")
        return 0
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
