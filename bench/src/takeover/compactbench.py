"""Prints the cases of CompactBench's practice sets, one JSON object a line. Arguments: folder of sets, seeds a template."""
import json
import pathlib
import sys

from compactbench.dsl import DifficultyLevel, parse_template_file
from compactbench.engine import generate_case
from compactbench.runner.continuation import select_continuation_prompt

for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.yaml")):
    template = parse_template_file(path)
    for seed in range(int(sys.argv[2])):
        case = generate_case(template, seed, DifficultyLevel.MEDIUM)
        truth = case.ground_truth
        print(json.dumps({
            "name": case.case_id,
            "family": template.family,
            "turns": [[str(turn.role.value), turn.content] for turn in case.transcript.turns],
            "continuations": [select_continuation_prompt(seed, cycle) for cycle in (1, 2)],
            "entities": list(truth.entity_map),
            "decisions": list(truth.locked_decisions),
            "forbidden": list(truth.forbidden_behaviors),
            "facts": list(truth.immutable_facts),
            "unresolved": list(truth.unresolved_items),
        }))
