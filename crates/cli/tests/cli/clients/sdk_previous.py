"""A conversation that names the answer before each turn, and one turn that names an early answer."""

import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="sk-of-the-client", max_retries=0)
TURNS = 60

answers = []
for turn in range(TURNS):
    text = f"Turn {turn}: " + "some words that take room " * 120
    more = {"previous_response_id": answers[-1]} if answers else {}
    if turn % 2:
        with client.responses.stream(model="worker", instructions="Be brief.", input=text, **more) as stream:
            for _ in stream:
                pass
            answers.append(stream.get_final_response().id)
    else:
        answers.append(client.responses.create(model="worker", instructions="Be brief.", input=text, **more).id)
other = client.responses.create(model="worker", input="Another way.", previous_response_id=answers[2])
assert other.output_text.startswith("This is answer"), other
print(len(answers), "turns")
