from openai import OpenAI
from pydantic import BaseModel

from common import BASE, key, run, spend, twice


class City(BaseModel):
    city: str


ASK = [{"role": "user", "content": "Say hello."}]
TOOL = {
    "type": "function",
    "function": {"name": "look_up", "description": "Looks up a city.",
                 "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
}


def client(kind):
    return OpenAI(base_url=BASE + "/v1", api_key=key(kind))


def used(u):
    return {"in": u.prompt_tokens, "out": u.completion_tokens}


def ask(kind, content="Say hello.", model="m", **more):
    c = client(kind)
    a = c.chat.completions.create(model=model, messages=[{"role": "user", "content": content}], max_tokens=50, **more)
    return {"text": a.choices[0].message.content, **used(a.usage)}


def stream():
    text, usage = "", {}
    with client("free").chat.completions.create(model="m", messages=ASK, stream=True, stream_options={"include_usage": True}) as s:
        for chunk in s:
            if chunk.choices:
                text += chunk.choices[0].delta.content or ""
            if chunk.usage:
                usage = used(chunk.usage)
    return {"text": text, **usage}


def silent():
    """A stream whose client asks for no usage."""
    text = ""
    for chunk in client("free").chat.completions.create(model="m", messages=ASK, stream=True):
        text += chunk.choices[0].delta.content or ""
    return {"text": text}


def tools():
    a = client("free").chat.completions.create(model="m", messages=ASK, tools=[TOOL])
    call = a.choices[0].message.tool_calls[0].function
    return {"text": call.name + call.arguments, **used(a.usage)}


def structured():
    a = client("free").chat.completions.parse(model="m", messages=ASK, response_format=City)
    return {"text": a.choices[0].message.parsed.city, **used(a.usage)}


def embeddings():
    a = client("free").embeddings.create(model="embed", input="hello there")
    return {"text": str(a.data[0].embedding), "in": a.usage.prompt_tokens}


def responses():
    a = client("free").responses.create(model="m", input="Say hello.", max_output_tokens=50)
    return {"text": a.output_text, "in": a.usage.input_tokens, "out": a.usage.output_tokens}


def responses_stream():
    with client("free").responses.stream(model="m", input="Say hello.") as s:
        for _ in s:
            pass
        a = s.get_final_response()
    return {"text": a.output_text, "in": a.usage.input_tokens, "out": a.usage.output_tokens}


run({
    "chat": lambda: ask("free"),
    "stream": stream,
    "silent": silent,
    "tools": tools,
    "structured": structured,
    "embeddings": embeddings,
    "responses": responses,
    "responses-stream": responses_stream,
    "limited": lambda: twice(lambda: ask("limited")),
    "brief": lambda: twice(lambda: ask("brief")),
    "broke": lambda: spend(lambda content: ask("broke", content)),
    "big": lambda: ask("big"),
    "killed": lambda: ask("killed", model="stopped"),
    "anonymous": lambda: OpenAI(base_url=BASE + "/v1", api_key="x", default_headers={"Authorization": "Basic eA=="}).chat.completions.create(model="m", messages=ASK),
})
