// What the Node clients share: one line of JSON for each case, for the test to read.
export const base = process.env.EMMER_BASE
export const key = kind => `${kind}-${process.env.EMMER_CLIENT}`

export async function twice(ask) {
  await ask()
  return ask()
}

// Spends a budget, and asks on until that is booked, some milliseconds after the answer.
export async function spend(ask) {
  await ask('Say hello and spend.')
  for (let i = 0; i < 100; i++) {
    await new Promise(done => setTimeout(done, 50))
    await ask('Say hello.')
  }
  return { text: 'never refused' }
}

export async function run(cases) {
  for (const [name, one] of Object.entries(cases)) {
    let line
    try {
      line = await one()
    } catch (e) {
      line = { error: e.constructor.name, status: e.status ?? 0, says: String(e.message).slice(0, 400) }
    }
    console.log(JSON.stringify({ case: name, ...line }))
  }
}
