// Counts texts with npm tiktoken: one JSON string per line in, "o200k_base cl100k_base" counts out.
//
//   node --input-type=module --eval "$(cat count.mjs)" MODULES < texts > counts
//
// MODULES is the folder in which `npm install` put the package that package.json pins. What looks
// like a special token is counted as the plain text that it is.
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const require = createRequire(resolve(process.argv.at(-1), 'package.json'));
const { get_encoding } = require('tiktoken');
const encodings = [get_encoding('o200k_base'), get_encoding('cl100k_base')];
const counts = [];
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const text = JSON.parse(line);
  counts.push(encodings.map((e) => e.encode_ordinary(text).length).join(' '));
}
process.stdout.write(counts.join('\n') + '\n');
