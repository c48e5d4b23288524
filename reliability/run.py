"""Measure rows: `make reliability`, `make security`, `make reliability ROWS=R4,R6 QUICK=1`.

Each line is `id, goal, measured, pass`. The exit status is 1 when one missed its goal.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Final

from reliability.row import Result, Scale

RELIABILITY: Final = {
    "R1": "r01_truncation",
    "R1c": "r01_corpus",
    "R2": "r02_fallback",
    "R3": "r03_honest_error",
    "R4": "r04_client_gone",
    "L2": "l02_order",
    "R5": "r05_cancelled",
    "R6": "r06_slow_clients",
    "R7": "r07_clocks",
    "R8": "r08_long_silence",
    "R9": "r09_slow_requests",
    "R10": "r10_sizes",
    "R12": "r12_drain",
    "R13": "r13_reload",
    "R14": "r14_pool",
    "R15": "r15_retries",
    "R16": "r16_outliers",
    "R18": "r18_loop",
    "R19": "r19_smuggling",
    "R20": "r20_fuzz",
    "R22": "r22_duplicates",
    "R24": "r24_overflow",
    "R25": "r25_ledger",
    "R26": "r26_budget",
    "R28": "r28_rate_limits",
    "R31": "r31_store_away",
    "R32": "r32_shared_budget",
    "R33": "r33_replica",
    "R34": "r34_counters_away",
    "R35": "r35_growth",
    "R36": "r36_partition",
    "R37": "r37_storm",
    "L11": "l11_cold_key",
    "L17": "l17_follow_ups",
    "L18": "l18_full_disk",
    "R30": "r30_quiet_logs",
    "H4": "h04_bounds",
    "H6": "h06_linear",
    "M": "m_cases",
    "R29": "r29_soak",
}
SECURITY: Final = {
    "S2": "s02_exposure",
    "S3": "s03_other_sites",
    "S4": "s04_front_door",
    "S6": "s06_keys",
    "S7": "s07_tenants",
    "S9": "s09_addresses",
    "S11": "s11_secrets",
    "S16": "s16_approval",
    "S16c": "s16_commands",
    "S18": "s18_sandbox",
    "S18c": "s18_contained",
    "S19": "s19_many_members",
    "S25": "s25_headers",
}
#: What is measured with another row, by which one it is picked.
WITH: Final = {
    "C1": ("H4", "H6"),
    "C2": ("H4", "H6"),
    "H5": ("H4",),
    "H7": ("H6",),
    "M6": ("H4",),
    "R11": ("R10",),
    "L1": ("R25",),
    "L7": ("R26",),
    "L8": ("R31", "R36"),
    "L9": ("R34",),
    "L12": ("R33",),
    "L16": ("R35",),
    "S10": ("S9",),
    "S12": ("S11",),
    "S20": ("S16", "S16c"),
    "S21": ("S16",),
}


def main() -> int:
    """Measure what was asked for and print it as it comes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("group", choices=["reliability", "security"])
    parser.add_argument("--rows", default=os.environ.get("ROWS", ""), help="only these, with commas between")
    parser.add_argument("--quick", action="store_true", default=bool(os.environ.get("QUICK")), help="fewer tries")
    options = parser.parse_args()
    rows = RELIABILITY if options.group == "reliability" else SECURITY
    named = [name.strip() for name in options.rows.split(",") if name.strip()]
    wanted = list(dict.fromkeys(row for name in named for row in WITH.get(name, (name,)))) or list(rows)
    unknown = [name for name in wanted if name not in rows]
    if unknown:
        parser.error(f"no such row: {', '.join(unknown)}; there are {', '.join(rows)}")
    scale = Scale(options.quick)
    missed = []
    print("| id | goal | measured | pass |\n|---|---|---|---|")
    if scale.quick:
        print("(QUICK: the numbers of tries are scaled down; each line says how many there were)", file=sys.stderr)
    for name in wanted:
        began = time.monotonic()
        for result in measured(name, rows[name], scale):
            print(result, flush=True)
            if not result.passed:
                missed.append(result.id)
        load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
        print(
            f"    {name} took {time.monotonic() - began:.0f} s; load {load} on {os.cpu_count()} cores", file=sys.stderr
        )
    print(f"missed: {', '.join(dict.fromkeys(missed))}" if missed else "every goal is met")
    return 1 if missed else 0


def measured(name: str, module: str, scale: Scale) -> Iterator[Result]:
    """The lines of a row; one that breaks is a miss, and the others are measured all the same."""
    try:
        yield from importlib.import_module(f"reliability.{module}").measure(scale)
    except Exception as problem:
        traceback.print_exc()
        yield Result(name, "can be measured", f"{type(problem).__name__}: {problem}", False)


if __name__ == "__main__":
    sys.exit(main())
