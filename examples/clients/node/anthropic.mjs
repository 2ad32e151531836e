import Anthropic from '@anthropic-ai/sdk'
import { base, key, run, spend, twice } from './common.mjs'

const client = kind => new Anthropic({ baseURL: base, apiKey: key(kind) })
const used = a => ({ in: a.usage.input_tokens, out: a.usage.output_tokens })
const call = (content = 'Say hello.', model = 'm') => ({ model, max_tokens: 50, messages: [{ role: 'user', content }] })

async function ask(kind, content, model) {
  const a = await client(kind).messages.create(call(content, model))
  return { text: a.content[0].text, ...used(a) }
}

async function stream() {
  const s = client('free').messages.stream(call())
  let text = ''
  s.on('text', t => { text += t })
  const whole = await s.finalMessage()
  return { text, ...used(whole) }
}

async function tools() {
  const a = await client('free').messages.create({ ...call(), tools: [{ name: 'look_up', input_schema: { type: 'object', properties: { city: { type: 'string' } } } }] })
  return { text: a.content[0].name + a.content[0].input.city, ...used(a) }
}

await run({
  chat: () => ask('free'),
  stream,
  tools,
  limited: () => twice(() => ask('limited')),
  brief: () => twice(() => ask('brief')),
  broke: () => spend(content => ask('broke', content)),
  big: () => ask('big'),
  killed: () => ask('killed', undefined, 'stopped'),
})
