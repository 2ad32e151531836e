import functools

from google import genai
from google.genai import types
from pydantic import BaseModel

from common import BASE, key, run, spend, twice


class City(BaseModel):
    city: str


def look_up(city: str) -> str:
    """Looks up a city."""
    return city


@functools.cache  # a client that nobody holds closes its connections
def client(kind):
    return genai.Client(api_key=key(kind), http_options=types.HttpOptions(base_url=BASE))


def used(u):
    return {"in": u.prompt_token_count, "out": u.candidates_token_count}


def ask(kind, content="Say hello.", model="m", **more):
    a = client(kind).models.generate_content(model=model, contents=content, config=types.GenerateContentConfig(max_output_tokens=50, **more))
    return {"text": a.text, **used(a.usage_metadata)}


def stream():
    text, last = "", None
    for chunk in client("free").models.generate_content_stream(model="m", contents="Say hello."):
        text, last = text + chunk.text, chunk
    return {"text": text, **used(last.usage_metadata)}


def tools():
    tool = types.Tool(function_declarations=[types.FunctionDeclaration(name="look_up", description="Looks up a city.",
                      parameters=types.Schema(type="OBJECT", properties={"city": types.Schema(type="STRING")}))])
    a = client("free").models.generate_content(model="m", contents="Where?", config=types.GenerateContentConfig(tools=[tool]))
    call = a.function_calls[0]
    return {"text": call.name + call.args["city"], **used(a.usage_metadata)}


def structured():
    a = client("free").models.generate_content(model="m", contents="Where?", config=types.GenerateContentConfig(response_mime_type="application/json", response_schema=City))
    return {"text": a.parsed.city, **used(a.usage_metadata)}


def embeddings():
    a = client("free").models.embed_content(model="embed", contents="hello there")
    return {"text": str(a.embeddings[0].values)}


run({
    "chat": lambda: ask("free"),
    "stream": stream,
    "tools": tools,
    "structured": structured,
    "embeddings": embeddings,
    "limited": lambda: twice(lambda: ask("limited")),
    "broke": lambda: spend(lambda content: ask("broke", content)),
    "big": lambda: ask("big"),
    "killed": lambda: ask("killed", model="stopped"),
})
