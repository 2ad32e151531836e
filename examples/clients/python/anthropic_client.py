from anthropic import Anthropic

from common import BASE, key, run, spend, twice

TOOL = {"name": "look_up", "description": "Looks up a city.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}


def client(kind):
    return Anthropic(base_url=BASE, api_key=key(kind))


def used(a):
    return {"in": a.usage.input_tokens, "out": a.usage.output_tokens}


def ask(kind, content="Say hello.", model="m", **more):
    a = client(kind).messages.create(model=model, max_tokens=50, messages=[{"role": "user", "content": content}], **more)
    return {"text": a.content[0].text, **used(a)}


def stream():
    with client("free").messages.stream(model="m", max_tokens=50, messages=[{"role": "user", "content": "Say hello."}]) as s:
        text = "".join(s.text_stream)
        a = s.get_final_message()
    return {"text": text, **used(a)}


def tools():
    a = client("free").messages.create(model="m", max_tokens=50, tools=[TOOL], messages=[{"role": "user", "content": "Where?"}])
    return {"text": a.content[0].name + a.content[0].input["city"], **used(a)}


run({
    "chat": lambda: ask("free"),
    "stream": stream,
    "tools": tools,
    "limited": lambda: twice(lambda: ask("limited")),
    "brief": lambda: twice(lambda: ask("brief")),
    "broke": lambda: spend(lambda content: ask("broke", content)),
    "big": lambda: ask("big"),
    "killed": lambda: ask("killed", model="stopped"),
})
