// What the Node clients share: one line of JSON for each case, for the test to read.
export const base = process.env.EMMER_BASE
export const key = kind => `${kind}-${process.env.EMMER_CLIENT}`

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
