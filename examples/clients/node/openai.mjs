import OpenAI from 'openai'
import { base, key, run, spend, twice } from './common.mjs'

const client = kind => new OpenAI({ baseURL: base + '/v1', apiKey: key(kind) })
const messages = [{ role: 'user', content: 'Say hello.' }]
const city = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false }
const used = u => ({ in: u.prompt_tokens, out: u.completion_tokens })

async function ask(kind, content = 'Say hello.', model = 'm') {
  const a = await client(kind).chat.completions.create({ model, max_tokens: 50, messages: [{ role: 'user', content }] })
  return { text: a.choices[0].message.content, ...used(a.usage) }
}

async function stream() {
  let text = '', usage = {}
  for await (const chunk of await client('free').chat.completions.create({ model: 'm', messages, stream: true, stream_options: { include_usage: true } })) {
    text += chunk.choices[0]?.delta.content ?? ''
    if (chunk.usage) usage = used(chunk.usage)
  }
  return { text, ...usage }
}

async function tools() {
  const a = await client('free').chat.completions.create({ model: 'm', messages, tools: [{ type: 'function', function: { name: 'look_up', parameters: city } }] })
  const call = a.choices[0].message.tool_calls[0].function
  return { text: call.name + call.arguments, ...used(a.usage) }
}

async function structured() {
  const a = await client('free').chat.completions.parse({ model: 'm', messages, response_format: { type: 'json_schema', json_schema: { name: 'city', strict: true, schema: city } } })
  return { text: JSON.parse(a.choices[0].message.content).city, ...used(a.usage) }
}

async function embeddings() {
  const a = await client('free').embeddings.create({ model: 'embed', input: 'hello there' })
  return { text: JSON.stringify(a.data[0].embedding), in: a.usage.prompt_tokens }
}

async function responses() {
  const a = await client('free').responses.create({ model: 'm', input: 'Say hello.' })
  return { text: a.output_text, in: a.usage.input_tokens, out: a.usage.output_tokens }
}

async function responsesStream() {
  const a = await client('free').responses.stream({ model: 'm', input: 'Say hello.' }).finalResponse()
  return { text: a.output_text, in: a.usage.input_tokens, out: a.usage.output_tokens }
}

await run({
  chat: () => ask('free'),
  stream,
  tools,
  structured,
  embeddings,
  responses,
  'responses-stream': responsesStream,
  limited: () => twice(() => ask('limited')),
  brief: () => twice(() => ask('brief')),
  broke: () => spend(content => ask('broke', content)),
  big: () => ask('big'),
  killed: () => ask('killed', undefined, 'stopped'),
})
