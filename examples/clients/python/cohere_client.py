import cohere

from common import BASE, key, run, spend, twice

TOOL = {"type": "function", "function": {"name": "look_up", "description": "Looks up a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}


def client(kind):
    return cohere.ClientV2(api_key=key(kind), base_url=BASE)


def used(u):
    return {"in": int(u.billed_units.input_tokens), "out": int(u.billed_units.output_tokens or 0)}


def ask(kind, content="Say hello.", model="m", **more):
    a = client(kind).chat(model=model, max_tokens=50, messages=[{"role": "user", "content": content}], **more)
    return {"text": a.message.content[0].text, **used(a.usage)}


def stream():
    text, usage = "", {}
    for e in client("free").chat_stream(model="m", max_tokens=50, messages=[{"role": "user", "content": "Say hello."}]):
        if e.type == "content-delta":
            text += e.delta.message.content.text
        if e.type == "message-end":
            usage = used(e.delta.usage)
    return {"text": text, **usage}


def tools():
    a = client("free").chat(model="m", messages=[{"role": "user", "content": "Where?"}], tools=[TOOL])
    call = a.message.tool_calls[0].function
    return {"text": call.name + call.arguments, **used(a.usage)}


def structured():
    return ask("free", response_format={"type": "json_object"})


def embeddings():
    a = client("free").embed(model="embed", texts=["hello there"], input_type="search_query", embedding_types=["float"])
    return {"text": str(a.embeddings.float_[0]), "in": int(a.meta.billed_units.input_tokens)}


def rerank():
    a = client("free").rerank(model="rerank", query="hello", documents=["one", "two"])
    return {"text": str([r.index for r in a.results]), "units": int(a.meta.billed_units.search_units)}


run({
    "chat": lambda: ask("free"),
    "stream": stream,
    "tools": tools,
    "structured": structured,
    "embeddings": embeddings,
    "rerank": rerank,
    "limited": lambda: twice(lambda: ask("limited")),
    "brief": lambda: twice(lambda: ask("brief")),
    "broke": lambda: spend(lambda content: ask("broke", content)),
    "big": lambda: ask("big"),
    "killed": lambda: ask("killed", model="stopped"),
})
