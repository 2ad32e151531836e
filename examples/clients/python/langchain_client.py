from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel

from common import BASE, key, run, twice


class City(BaseModel):
    """A city."""
    city: str


def openai(kind, **more):
    return ChatOpenAI(model="m", base_url=BASE + "/v1", api_key=key(kind), max_tokens=50, **more)


def anthropic(kind):
    return ChatAnthropic(model="m", base_url=BASE, api_key=key(kind), max_tokens=50)


def told(a):
    return {"text": a.content, "in": a.usage_metadata["input_tokens"], "out": a.usage_metadata["output_tokens"]}


def stream(model):
    whole = None
    for chunk in model.stream("Say hello."):
        whole = chunk if whole is None else whole + chunk
    text = whole.content if isinstance(whole.content, str) else "".join(p.get("text", "") for p in whole.content)
    return {"text": text, "in": whole.usage_metadata["input_tokens"], "out": whole.usage_metadata["output_tokens"]}


def structured():
    return {"text": openai("free").with_structured_output(City).invoke("Where?").city}


def tools():
    return {"text": str(anthropic("free").bind_tools([City]).invoke("Where?").tool_calls[0]["args"])}


def embeddings():
    e = OpenAIEmbeddings(model="embed", base_url=BASE + "/v1", api_key=key("free"), check_embedding_ctx_length=False)
    return {"text": str(e.embed_query("hello there"))}


run({
    "chat": lambda: told(openai("free").invoke("Say hello.")),
    "stream": lambda: stream(openai("free", stream_usage=True)),
    "structured": structured,
    "embeddings": embeddings,
    "limited": lambda: twice(lambda: told(openai("limited").invoke("Say hello."))),
    "anthropic-chat": lambda: told(anthropic("free").invoke("Say hello.")),
    "anthropic-stream": lambda: stream(anthropic("free")),
    "anthropic-tools": tools,
    "anthropic-limited": lambda: twice(lambda: told(anthropic("limited").invoke("Say hello."))),
})
